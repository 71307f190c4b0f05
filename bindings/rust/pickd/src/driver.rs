//! The task that takes the answers of a queue when its descriptor tells of some. Knows no picks.

use std::future::poll_fn;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::io::Interest;

use crate::error::{Code, Error};
use crate::queue::{Queue, BATCH};

/// How long the ring is given to empty itself where no answers are to come that tell of room.
const PAUSE: Duration = Duration::from_micros(100);

/// A crowd waits and few answers come: the daemon is behind, and looking for each answer as it
/// comes would take from both what they need. So the driver lets a number of them gather, while
/// the runtime does what else there is to do.
const CROWD: u32 = 256;
const FEW: usize = 16;
const BREATH: Duration = Duration::from_micros(50);

/// Starts the driver of a queue in the runtime of the caller.
pub(crate) fn start(queue: &Arc<Queue>) -> Result<(), Error> {
    let failed = |error: std::io::Error| {
        Error::new("open", Code::from_errno(error.raw_os_error().unwrap_or(libc::EIO)))
    };
    // A descriptor of its own, which the runtime lets go of when it likes.
    // SAFETY: the queue is open, so the descriptor is.
    let events = unsafe { BorrowedFd::borrow_raw(queue.event_fd()?) };
    let events = events.try_clone_to_owned().map_err(failed)?;
    // Deprecated for types that lie about their descriptor; what replaces it is newer than the
    // oldest tokio that this crate takes.
    #[allow(deprecated)]
    let watched = |fd| AsyncFd::with_interest(fd, Interest::READABLE).map_err(failed);
    let breather = Breather(watched(timer().map_err(failed)?)?);
    tokio::spawn(drive(queue.clone(), watched(events)?, breather));
    Ok(())
}

fn timer() -> std::io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    let fd = unsafe {
        libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits for less than the millisecond that is the least for the runtime's own timers.
struct Breather(AsyncFd<OwnedFd>);

impl Breather {
    async fn breathe(&self) {
        let once = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec { tv_sec: 0, tv_nsec: i64::from(BREATH.subsec_nanos()) },
        };
        // SAFETY: the descriptor is open, and the time good for the call. To set it also takes
        // back that it has been over before, so nothing is to be read.
        unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &once, std::ptr::null_mut()) };
        if let Ok(mut over) = self.0.readable().await {
            over.clear_ready();
        }
    }
}

/// Ends the queue with its driver: when the runtime ends first, nobody takes answers any more.
struct EndWith(Arc<Queue>);

impl Drop for EndWith {
    fn drop(&mut self) {
        self.0.end();
    }
}

async fn drive(queue: Arc<Queue>, events: AsyncFd<OwnedFd>, breather: Breather) {
    let ended = EndWith(queue);
    let queue = &*ended.0;
    let mut wakers = Vec::with_capacity(BATCH);
    loop {
        tokio::select! {
            ready = events.readable() => {
                let Ok(mut ready) = ready else { return };
                take_all(queue, &mut wakers, &breather).await;
                ready.clear_ready();
            }
            () = queue.stirred() => loop {
                if queue.is_closed() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
                take_all(queue, &mut wakers, &breather).await;
                if !queue.retry() {
                    break;
                }
            },
        }
    }
}

/// Takes answers until there are none, which arms the descriptor. In between the tasks that were
/// woken run: what they submit may be answered by then, and to find that costs less than to sleep
/// and be woken for it.
async fn take_all(queue: &Queue, wakers: &mut Vec<Waker>, breather: &Breather) {
    loop {
        let (taken, outstanding) = queue.take(wakers);
        if taken == 0 {
            return;
        }
        wakers.drain(..).for_each(Waker::wake);
        if taken < FEW && outstanding >= CROWD {
            breather.breathe().await;
        } else {
            behind_others().await;
        }
    }
}

/// Goes to the end of the scheduler's queue. What tokio has for that also looks for I/O each time.
async fn behind_others() {
    let mut went = false;
    poll_fn(|context| {
        if std::mem::replace(&mut went, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
