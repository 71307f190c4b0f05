//! The future of a pick: submits when it is polled first, and takes its pick back when it is
//! dropped.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::error::{Code, Error};
use crate::pick::Pick;
use crate::queue::{closed, Queue, Submitted};
use crate::request::{microseconds, Request};

/// A pick under way; see [`AsyncClient::pick`](crate::AsyncClient::pick).
///
/// It may be dropped at any time: a pick that is not answered yet is cancelled, one whose answer
/// came first is reported as cancelled, so nothing stays reserved.
#[must_use = "futures do nothing unless they are awaited"]
pub struct PickFuture<'a> {
    queue: &'a Queue,
    request: &'a Request<'a>,
    deadline: Option<Instant>,
    stage: Stage,
}

enum Stage {
    Begun,
    InLine(u64, Option<Pin<Box<tokio::time::Sleep>>>),
    Outstanding(u32),
    Over,
}

impl<'a> PickFuture<'a> {
    pub(crate) fn new(
        queue: &'a Queue,
        request: &'a Request<'a>,
        longest: Option<Duration>,
    ) -> PickFuture<'a> {
        // A timeout that no clock can hold is none.
        let deadline = longest.and_then(|longest| Instant::now().checked_add(longest));
        PickFuture { queue, request, deadline, stage: Stage::Begun }
    }

    fn timeout_us(&self) -> i64 {
        self.deadline.map_or(0, |at| microseconds(at.saturating_duration_since(Instant::now())))
    }

    fn submit(&mut self, context: &mut Context<'_>) -> Poll<Result<Pick, Error>> {
        let mut state = self.queue.lock();
        let place = match &self.stage {
            Stage::InLine(place, _) => Some(*place),
            _ => None,
        };
        if state.is_closed() {
            self.stage = Stage::Over;
            return Poll::Ready(Err(closed("pick")));
        }
        let in_turn = place.map_or(!state.has_line(), |place| state.is_first(place));
        let submitted = if in_turn {
            self.queue.submit(&mut state, self.request, self.timeout_us(), context.waker())
        } else {
            Ok(Submitted::Full)
        };
        if !matches!(submitted, Ok(Submitted::Full)) {
            if let Some(place) = place {
                self.queue.leave_line(&mut state, place);
            }
        }
        match submitted {
            Ok(Submitted::Waits(slot)) => {
                self.stage = Stage::Outstanding(slot);
                return Poll::Pending;
            }
            Ok(Submitted::Answered(answer)) => {
                self.stage = Stage::Over;
                return Poll::Ready(answer);
            }
            Err(error) => {
                self.stage = Stage::Over;
                return Poll::Ready(Err(error));
            }
            Ok(Submitted::Full) => {}
        }
        match place {
            Some(place) => state.stay_in_line(place, context.waker()),
            None => {
                let place = state.join_line(context.waker());
                let sleep = self.deadline.map(|at| Box::pin(tokio::time::sleep_until(at.into())));
                self.stage = Stage::InLine(place, sleep);
            }
        }
        self.queue.stir_if_stuck(&mut state);
        drop(state);
        self.poll_deadline(context)
    }

    /// Of one in line: the library does not know of it yet, so it has no deadline there.
    fn poll_deadline(&mut self, context: &mut Context<'_>) -> Poll<Result<Pick, Error>> {
        let Stage::InLine(place, Some(sleep)) = &mut self.stage else { return Poll::Pending };
        if sleep.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.queue.leave_line(&mut self.queue.lock(), *place);
        self.stage = Stage::Over;
        Poll::Ready(Err(Error::new("pick", Code::Timeout)))
    }
}

impl Future for PickFuture<'_> {
    type Output = Result<Pick, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Stage::Outstanding(slot) = self.stage else {
            assert!(!matches!(self.stage, Stage::Over), "a pick was polled after it was ready");
            return self.submit(context);
        };
        match self.queue.lock().answer(slot, Some(context.waker())) {
            None => Poll::Pending,
            Some(answer) => {
                self.stage = Stage::Over;
                Poll::Ready(answer)
            }
        }
    }
}

impl Drop for PickFuture<'_> {
    fn drop(&mut self) {
        match self.stage {
            Stage::InLine(place, _) => self.queue.leave_line(&mut self.queue.lock(), place),
            Stage::Outstanding(slot) => self.queue.abandon(slot),
            Stage::Begun | Stage::Over => {}
        }
    }
}
