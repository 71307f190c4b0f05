//! One asynchronous queue of libpickd and who may touch it when. Knows wakers, and no runtime: who
//! waits is in wait.rs, who takes answers in driver.rs.
//!
//! The library's functions are called under the mutex, one at a time; none of them waits. A pick
//! that finds no room stands in line, and the first of the line tries again when there may be some.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::Waker;
use std::time::{Duration, Instant};

use pickd_sys as sys;

use crate::client::Handle;
use crate::error::{Code, Error};
use crate::pick::Pick;
use crate::pool::Pooled;
use crate::report::Report;
use crate::request::Request;
use crate::spin::Spin;

/// Answers that are taken without giving the mutex back.
pub(crate) const BATCH: usize = 64;

/// Reports that may wait for room in the ring.
const REPORTS_MAX: usize = 65_536;

pub(crate) type Answer = Result<Pick, Error>;

pub(crate) struct Queue {
    state: Mutex<State>,
    wanted: AtomicBool, // a thread waits for the mutex: stop looking for an answer under it
    stir: tokio::sync::Notify, // the driver is to look at the line, or to end
    handle: Arc<Handle>, // the client must outlive its queues
}

pub(crate) struct State {
    raw: Option<NonNull<sys::pickd_queue>>, // None: closed
    spare: Option<Pooled>,                  // what the next answer is put into
    slots: Vec<Slot>,                       // by the number that the library hands back
    free: Vec<u32>,
    outstanding: u32,
    line: VecDeque<(u64, Waker)>, // by place, ascending
    places: u64,
    reports: VecDeque<Report>, // that found the ring full
    stirred: bool,             // the driver was told
    unarmed: bool,             // the last look found an answer, so nothing will signal the next
    spin: Spin,
}

// SAFETY: the queue belongs to one thread at a time, which the mutex sees to.
unsafe impl Send for State {}

enum Slot {
    Free,
    Waiting(sys::pickd_ticket, Option<Waker>),
    Answered(Answer),
}

/// What became of an attempt to submit.
pub(crate) enum Submitted {
    /// It is outstanding, with this slot.
    Waits(u32),
    /// Its answer is there already.
    Answered(Answer),
    /// No room.
    Full,
}

impl Queue {
    pub(crate) fn open(
        handle: &Arc<Handle>,
        depth: u32,
        spin: Option<Duration>,
    ) -> Result<Queue, Error> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the client is open.
        let code = unsafe { sys::pickd_queue_open(handle.as_ptr(), depth, &mut raw) };
        handle.check("open", code)?;
        Ok(Queue {
            state: Mutex::new(State {
                raw: NonNull::new(raw),
                spare: None,
                slots: (0..depth).map(|_| Slot::Free).collect(),
                free: (0..depth).rev().collect(),
                outstanding: 0,
                line: VecDeque::new(),
                places: 0,
                reports: VecDeque::new(),
                stirred: false,
                unarmed: false,
                spin: Spin::new(spin),
            }),
            wanted: AtomicBool::new(false),
            stir: tokio::sync::Notify::new(),
            handle: handle.clone(),
        })
    }

    /// The descriptor that tells of answers; the library's own.
    pub(crate) fn event_fd(&self) -> Result<i32, Error> {
        let state = self.lock();
        let Some(raw) = state.raw else { return Err(closed("open")) };
        // SAFETY: the queue is open, and this thread has it.
        let fd = unsafe { sys::pickd_queue_event_fd(raw.as_ptr()) };
        self.handle.check("open", fd).map(|()| fd)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.try_lock() {
            Ok(state) => return state,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {}
        }
        // Partner: look() loads it while it holds the mutex. Only a hint.
        self.wanted.store(true, Ordering::Relaxed);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.store(false, Ordering::Relaxed);
        state
    }

    pub(crate) async fn stirred(&self) {
        self.stir.notified().await;
    }

    // ---- Picks ----------------------------------------------------------------------------------

    /// Submits a pick whose task is woken by `waker`. One that is alone looks for its answer.
    pub(crate) fn submit(
        &self,
        state: &mut State,
        request: &Request<'_>,
        timeout_us: i64,
        waker: &Waker,
    ) -> Result<Submitted, Error> {
        let Some(queue) = state.raw else { return Err(closed("pick")) };
        let Some(&slot) = state.free.last() else { return Ok(Submitted::Full) };
        let raw = request.raw(timeout_us);
        // All that can be done before, and the ticket where it belongs: what is written into the
        // ring takes its time to leave this core, and to read back or to count a reference waits.
        let at = &mut state.slots[slot as usize];
        *at = Slot::Waiting(sys::pickd_ticket::default(), Some(waker.clone()));
        let Slot::Waiting(ticket, _) = at else { return Err(closed("pick")) };
        // SAFETY: the queue is open, and this thread has it; `raw` points into the request.
        let code = unsafe { sys::pickd_queue_submit(queue.as_ptr(), &raw, slot.into(), ticket) };
        if code != 0 {
            *at = Slot::Free;
            if code == -libc::EAGAIN {
                return Ok(Submitted::Full);
            }
            self.handle.check("pick", code)?;
        }
        state.free.pop();
        state.outstanding += 1;
        let budget = if state.outstanding == 1 { state.spin.budget() } else { Duration::ZERO };
        if !budget.is_zero() || state.unarmed {
            let answer = self.look(state, slot, budget);
            if !budget.is_zero() {
                state.spin.learn(answer.is_some());
            }
            if let Some(answer) = answer {
                return Ok(Submitted::Answered(answer));
            }
        }
        Ok(Submitted::Waits(slot))
    }

    /// Looks for the answer of `slot`, once at least. Each look takes back the request to be woken
    /// and makes it again, so that the daemon, which most often finds it taken back, has nobody to
    /// wake.
    fn look(&self, state: &mut State, slot: u32, longest: Duration) -> Option<Answer> {
        let until = Instant::now() + longest;
        loop {
            match state.poll() {
                Some((at, waker)) => {
                    if at == slot {
                        return state.answer(slot, None);
                    }
                    waker.into_iter().for_each(Waker::wake);
                }
                None if self.wanted.load(Ordering::Relaxed) || Instant::now() >= until => {
                    return None;
                }
                None => std::hint::spin_loop(),
            }
        }
    }

    /// Forgets the pick of a slot whose future was dropped: what it reserved is released.
    pub(crate) fn abandon(&self, slot: u32) {
        let mut state = self.lock();
        let state = &mut *state;
        match std::mem::replace(&mut state.slots[slot as usize], Slot::Free) {
            Slot::Waiting(ticket, _) => {
                if let Some(queue) = state.raw {
                    // SAFETY: the queue is open, and this thread has it. Fails only for a ticket
                    // that is not outstanding.
                    unsafe { sys::pickd_queue_cancel(queue.as_ptr(), ticket) };
                }
                state.outstanding -= 1;
            }
            // The answer came first, and holds a reservation that nobody would report on.
            Slot::Answered(Ok(pick)) => {
                let _ = self.report_locked(state, &Report::cancelled(pick.ticket()));
            }
            Slot::Answered(Err(_)) | Slot::Free => {}
        }
        state.free.push(slot);
        self.after_room(state);
    }

    /// Takes answers, at most a batch; puts those who wait for them into `wakers`. Returns how many
    /// there were, and how many picks are outstanding. When it took fewer than a batch the
    /// descriptor will signal the next.
    pub(crate) fn take(&self, wakers: &mut Vec<Waker>) -> (usize, u32) {
        let mut state = self.lock();
        let mut taken = 0;
        while taken < BATCH {
            let Some((_, waker)) = state.poll() else { break };
            wakers.extend(waker);
            taken += 1;
        }
        if taken > 0 {
            self.after_room(&mut state);
        }
        (taken, state.outstanding)
    }

    // ---- Reports --------------------------------------------------------------------------------

    pub(crate) fn report(&self, report: &Report) -> Result<(), Error> {
        let mut state = self.lock();
        self.report_locked(&mut state, report)
    }

    fn report_locked(&self, state: &mut State, report: &Report) -> Result<(), Error> {
        if state.raw.is_none() {
            return Err(closed("report"));
        }
        // Not past those that wait: reports on one ticket stay in order.
        if state.reports.is_empty() {
            let code = state.hand_over(report);
            if code != -libc::EAGAIN {
                return self.handle.check("report", code);
            }
        }
        if state.reports.len() >= REPORTS_MAX {
            return Err(Error::new("report", Code::Limited));
        }
        state.reports.push_back(report.clone());
        self.stir_if_stuck(state);
        Ok(())
    }

    // ---- Those who wait for room ----------------------------------------------------------------

    /// There may be room: for reports first, then for the first in line.
    fn after_room(&self, state: &mut State) {
        while let Some(report) = state.reports.pop_front() {
            if state.hand_over(&report) == -libc::EAGAIN {
                state.reports.push_front(report);
                break;
            }
        }
        if !state.free.is_empty() || state.raw.is_none() {
            if let Some((_, waker)) = state.line.front() {
                waker.wake_by_ref();
            }
        }
        self.stir_if_stuck(state);
    }

    /// Sees to it that somebody looks for room where no answers are to come that tell of it: the
    /// ring may be full of reports.
    pub(crate) fn stir_if_stuck(&self, state: &mut State) {
        if state.stuck() && !state.stirred {
            state.stirred = true;
            self.stir.notify_one();
        }
    }

    /// For the driver, a while after it was stirred. True while it should come again.
    pub(crate) fn retry(&self) -> bool {
        let mut state = self.lock();
        self.after_room(&mut state);
        state.stirred = state.stuck();
        state.stirred
    }

    /// Takes somebody out of the line; the next may have waited for that.
    pub(crate) fn leave_line(&self, state: &mut State, place: u64) {
        if let Ok(at) = state.line.binary_search_by_key(&place, |(place, _)| *place) {
            state.line.remove(at);
            self.after_room(state);
        }
    }

    // ---- The end --------------------------------------------------------------------------------

    /// Answers all who wait with [`Code::Closed`], closes the queue and ends its driver.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        let Some(queue) = state.raw.take() else { return };
        // SAFETY: this thread has the queue, and nobody finds it any more.
        unsafe { sys::pickd_queue_close(queue.as_ptr()) };
        state.outstanding = 0;
        state.reports.clear();
        let mut wakers: Vec<Waker> = state.line.drain(..).map(|(_, waker)| waker).collect();
        for slot in &mut state.slots {
            if let Slot::Waiting(_, waker) = slot {
                wakers.extend(waker.take());
                *slot = Slot::Answered(Err(closed("pick")));
            }
        }
        drop(state);
        self.stir.notify_one();
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.end();
    }
}

impl State {
    /// Takes one answer out of the library and into its slot.
    fn poll(&mut self) -> Option<(u32, Option<Waker>)> {
        let queue = self.raw?;
        let mut result = match self.spare.take() {
            Some(result) => result,
            None => Pooled::get().ok()?,
        };
        let mut slot = 0;
        // SAFETY: the queue is open, and this thread has it; the result is ours.
        let code = unsafe { sys::pickd_queue_poll(queue.as_ptr(), result.as_mut_ptr(), &mut slot) };
        self.unarmed = code == 1;
        if code != 1 {
            self.spare = Some(result);
            return None;
        }
        self.outstanding -= 1;
        let answered = Slot::Answered(Pick::take(result));
        match std::mem::replace(&mut self.slots[slot as usize], answered) {
            Slot::Waiting(_, waker) => Some((slot as u32, waker)),
            _ => Some((slot as u32, None)),
        }
    }

    /// The answer of a slot, which is free then; or who is to be woken when it comes.
    pub(crate) fn answer(&mut self, slot: u32, waker: Option<&Waker>) -> Option<Answer> {
        let at = &mut self.slots[slot as usize];
        if let Slot::Waiting(_, known) = at {
            if let (Some(known), Some(waker)) = (known, waker) {
                known.clone_from(waker);
            }
            return None;
        }
        self.free.push(slot);
        match std::mem::replace(at, Slot::Free) {
            Slot::Answered(answer) => Some(answer),
            _ => Some(Err(closed("pick"))),
        }
    }

    fn hand_over(&mut self, report: &Report) -> i32 {
        let Some(queue) = self.raw else { return -libc::ESHUTDOWN };
        let raw = report.raw();
        // SAFETY: the queue is open, and this thread has it; `raw` points into the report.
        unsafe { sys::pickd_queue_report(queue.as_ptr(), &raw) }
    }

    fn stuck(&self) -> bool {
        self.raw.is_some()
            && self.outstanding == 0
            && !(self.line.is_empty() && self.reports.is_empty())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.raw.is_none()
    }

    /// Whether a newcomer must stand in line.
    pub(crate) fn has_line(&self) -> bool {
        !self.line.is_empty()
    }

    pub(crate) fn is_first(&self, place: u64) -> bool {
        self.line.front().map_or(true, |(first, _)| *first == place)
    }

    pub(crate) fn join_line(&mut self, waker: &Waker) -> u64 {
        self.places += 1;
        self.line.push_back((self.places, waker.clone()));
        self.places
    }

    pub(crate) fn stay_in_line(&mut self, place: u64, waker: &Waker) {
        if let Ok(at) = self.line.binary_search_by_key(&place, |(place, _)| *place) {
            self.line[at].1.clone_from(waker);
        }
    }
}

pub(crate) fn closed(op: &'static str) -> Error {
    Error::new(op, Code::Closed)
}
