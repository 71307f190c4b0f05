//! Results for use again: each thread keeps some, the rest is shared. Does not know what is in
//! them.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::pick::Filled;

const KEPT_BY_A_THREAD: usize = 128;
const KEPT_BY_ALL: usize = 2048;
const MOVED_AT_ONCE: usize = 64;

/// A result that goes back to its pool. One pointer, which is all that moves with an answer.
pub(crate) struct Pooled(ManuallyDrop<Box<Filled>>);

/// Boxes, because what moves with an answer is the box.
#[allow(clippy::vec_box)]
type Kept = Vec<Box<Filled>>;

thread_local! {
    static OWN: RefCell<Kept> = const { RefCell::new(Vec::new()) };
}

/// One thread takes answers and another drops them: what the one has too much the other lacks.
static SHARED: Mutex<Kept> = Mutex::new(Vec::new());

impl Pooled {
    pub(crate) fn get() -> Result<Pooled, Error> {
        let kept = OWN.try_with(|own| {
            let mut own = own.try_borrow_mut().ok()?;
            if own.is_empty() {
                let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
                let from = shared.len().saturating_sub(MOVED_AT_ONCE);
                own.extend(shared.drain(from..));
            }
            own.pop()
        });
        let filled = match kept {
            Ok(Some(kept)) => kept,
            _ => Box::new(Filled::new()?),
        };
        Ok(Pooled(ManuallyDrop::new(filled)))
    }
}

impl Deref for Pooled {
    type Target = Filled;

    fn deref(&self) -> &Filled {
        &self.0
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Filled {
        &mut self.0
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // SAFETY: it is not used after this.
        let mut again = Some(unsafe { ManuallyDrop::take(&mut self.0) });
        // A thread that is ending keeps nothing any more: then it is freed.
        let _ = OWN.try_with(|own| {
            let Ok(mut own) = own.try_borrow_mut() else { return };
            if own.len() >= KEPT_BY_A_THREAD {
                let surplus = own.len() - MOVED_AT_ONCE;
                let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
                if shared.len() < KEPT_BY_ALL {
                    shared.extend(own.drain(surplus..));
                } else {
                    own.truncate(surplus);
                }
            }
            own.extend(again.take());
        });
    }
}
