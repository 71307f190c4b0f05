//! Results for use again: each thread keeps some, the rest is shared. Does not know what is in
//! them.

use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pickd_sys as sys;

use crate::error::{Code, Error};

const KEPT_BY_A_THREAD: usize = 128;
const KEPT_BY_ALL: usize = 2048;
const MOVED_AT_ONCE: usize = 64;

/// A result of the library that goes back to its pool.
pub(crate) struct PooledResult(NonNull<sys::pickd_result>);

// SAFETY: a result belongs to one thread at a time, not to a certain one; this owns it.
unsafe impl Send for PooledResult {}

/// Frees what a thread keeps when the thread ends.
struct Kept(Vec<PooledResult>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.drain(..).for_each(PooledResult::free);
    }
}

thread_local! {
    static OWN: RefCell<Kept> = const { RefCell::new(Kept(Vec::new())) };
}

/// One thread takes answers and another drops them: what the one has too much the other lacks.
static SHARED: Mutex<Vec<PooledResult>> = Mutex::new(Vec::new());

impl PooledResult {
    pub(crate) fn get() -> Result<PooledResult, Error> {
        let kept = OWN.try_with(|own| {
            let mut own = own.try_borrow_mut().ok()?;
            if own.0.is_empty() {
                let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
                let from = shared.len().saturating_sub(MOVED_AT_ONCE);
                own.0.extend(shared.drain(from..));
            }
            own.0.pop()
        });
        if let Ok(Some(kept)) = kept {
            return Ok(kept);
        }
        // SAFETY: no arguments.
        let made = NonNull::new(unsafe { sys::pickd_result_new() });
        made.map(PooledResult).ok_or_else(|| Error::new("pick", Code::NoMemory))
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::pickd_result {
        self.0.as_ptr()
    }

    fn free(self) {
        // SAFETY: this owned it, and forgets it.
        unsafe { sys::pickd_result_free(self.0.as_ptr()) };
        std::mem::forget(self);
    }
}

impl Drop for PooledResult {
    fn drop(&mut self) {
        let again = PooledResult(self.0);
        let mut again = Some(again);
        let _ = OWN.try_with(|own| {
            let Ok(mut own) = own.try_borrow_mut() else { return };
            if own.0.len() >= KEPT_BY_A_THREAD {
                let from = own.0.len() - MOVED_AT_ONCE;
                let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
                if shared.len() < KEPT_BY_ALL {
                    shared.extend(own.0.drain(from..));
                } else {
                    drop(shared);
                    own.0.drain(from..).for_each(PooledResult::free);
                }
            }
            own.0.extend(again.take());
        });
        // The thread is ending, and keeps nothing any more.
        if let Some(again) = again {
            again.free();
        }
    }
}
