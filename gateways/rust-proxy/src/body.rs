//! Readers of bodies and answers for use again, and reading the body of a request up to the limit.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::StatusCode;
use pickd::body::{Answer, AnswerOptions, Body, BodyOptions, Head};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::refusal::Refusal;

/// How many are kept while nobody needs them.
const KEPT: usize = 256;

/// A request's reader and its answer's.
pub struct Readers {
    pub body: Body,
    pub answer: Answer,
}

/// Readers for any number of requests at once.
pub struct Pool {
    options: BodyOptions,
    kept: Mutex<Vec<Readers>>,
}

impl Pool {
    pub fn new(body_bytes_max: usize) -> Arc<Pool> {
        let options = BodyOptions { body_bytes_max, ..BodyOptions::default() };
        Arc::new(Pool { options, kept: Mutex::new(Vec::new()) })
    }

    pub fn get(self: &Arc<Pool>) -> Result<Lent, pickd::Error> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let readers = match kept {
            Some(kept) => kept,
            None => Readers {
                body: Body::new(&self.options)?,
                answer: Answer::new(&AnswerOptions::default())?,
            },
        };
        Ok(Lent { readers: Some(readers), pool: self.clone() })
    }
}

/// Readers that go back to their pool.
pub struct Lent {
    readers: Option<Readers>, // None: only while it is dropped
    pool: Arc<Pool>,
}

impl Deref for Lent {
    type Target = Readers;

    fn deref(&self) -> &Readers {
        self.readers.as_ref().expect("readers until the drop")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Readers {
        self.readers.as_mut().expect("readers until the drop")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut kept = self.pool.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.extend(self.readers.take());
        }
    }
}

/// What all bodies are held to.
pub struct Limits {
    pub bytes: usize,         // of one
    pub timeout: Duration,    // for each piece
    pub room: Arc<Semaphore>, // KiB that all of them may still take
}

/// Whose pieces come in time, but hardly anything in them, is waited for so many times that long.
const TIMEOUTS: u32 = 10;
const ROOM_UNIT: usize = 1024;

/// The room that a body takes until the engine's answer is over.
#[derive(Default)]
pub struct Held(Option<OwnedSemaphorePermit>);

impl Held {
    /// Room for `size` bytes in all.
    fn grow_to(&mut self, size: usize, room: &Arc<Semaphore>) -> Result<(), Refusal> {
        let held = self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = size.div_ceil(ROOM_UNIT).saturating_sub(held);
        if more == 0 {
            return Ok(());
        }
        let more = u32::try_from(more)
            .ok()
            .and_then(|more| room.clone().try_acquire_many_owned(more).ok());
        let more = more.ok_or_else(|| {
            let words = "the bodies of other requests take all the room there is for them";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, words)
        })?;
        match &mut self.0 {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// Room for so many bytes of bodies.
pub fn room(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes.div_ceil(ROOM_UNIT)))
}

/// Reads a request's body and returns it whole, to send it as often as there are endpoints to try.
/// A body that the library cannot read has no prompt, and goes to the engine all the same.
pub async fn read(
    body: &mut Body,
    head: Head<'_>,
    mut from: Incoming,
    limits: &Limits,
) -> Result<(Bytes, Held), Refusal> {
    let limit = limits.bytes;
    let until = Instant::now() + TIMEOUTS * limits.timeout;
    let mut held = Held::default();
    let too_long = || {
        let words = format!("the request's body is over the proxy's limit of {limit} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words)
    };
    if from.size_hint().lower() > limit as u64 {
        return Err(too_long());
    }
    body.begin(&head.body_bytes(from.size_hint().lower() as usize))?;
    let mut pieces = Vec::new();
    let mut size = 0;
    loop {
        let patience = until.min(Instant::now() + limits.timeout);
        let frame = tokio::time::timeout_at(patience, from.frame()).await.map_err(|_| {
            Refusal::new(StatusCode::REQUEST_TIMEOUT, "the rest of the body did not come in time")
        })?;
        let Some(frame) = frame else { break };
        let frame =
            frame.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let Ok(piece) = frame.into_data() else { continue }; // trailers
        size += piece.len();
        if size > limit {
            return Err(too_long());
        }
        held.grow_to(size, &limits.room)?;
        body.add(&piece)?;
        pieces.push(piece);
    }
    // Why it cannot be read is the engine's to say.
    let _ = body.end();
    let whole = match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.swap_remove(0),
        _ => pieces.concat().into(),
    };
    Ok((whole, held))
}
