//! The asynchronous client: which queue a pick goes to, opening and closing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

use crate::client::{Client, Info};
use crate::driver;
use crate::error::{Code, Error};
use crate::options::Options;
use crate::queue::Queue;
use crate::report::Report;
use crate::request::Request;
use crate::wait::PickFuture;

const DEPTH_DEFAULT: u32 = 1024;
const QUEUES_MAX: usize = 8;
const PROCESSORS_PER_QUEUE: usize = 4;

/// A connection to the daemon for tasks of a tokio runtime (with time and I/O enabled).
///
/// It is `Send` and `Sync`, and clones share the connection: any number of tasks may use it at
/// once, and one that waits holds no thread. Picks go through libpickd's asynchronous queue: a
/// submission is one short call into C, answers come in batches, and the wait is on a descriptor in
/// the runtime.
///
/// The connection closes with the last clone, or with the runtime that it was opened in; what is
/// under way then ends with [`Code::Closed`]. It must not be used in a process forked without exec.
///
/// ```
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), pickd::Error> {
/// # if std::env::var_os("PICKD_SOCKET").is_none() { return Ok(()) } // no daemon to ask
/// let client = pickd::AsyncClient::open().await?;
/// let request = pickd::Request::new().model("llama-3.1-70b").text("Once upon a time");
/// let pick = client.pick_within(&request, Duration::from_millis(100)).await?;
/// println!("{} ({})", pick.address(), pick.reason());
/// client.report(&pickd::Report::done(pick.ticket()))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AsyncClient {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    queues: Vec<Arc<Queue>>,
    turn: AtomicUsize,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.end());
    }
}

impl Options {
    /// Connects, for tasks of this runtime.
    ///
    /// # Errors
    /// Those of [`Options::open`]; [`Code::Invalid`] for a depth over 4096.
    ///
    /// # Panics
    /// Outside of a tokio runtime, or in one without I/O or time.
    pub async fn open_async(&self) -> Result<AsyncClient, Error> {
        let options = self.clone();
        let client = run(move || options.open()).await?;
        let depth = if self.depth == 0 { DEPTH_DEFAULT } else { self.depth };
        let count = if self.queues == 0 {
            let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
            (processors / PROCESSORS_PER_QUEUE).clamp(1, QUEUES_MAX)
        } else {
            self.queues
        };
        let spin = self.spin;
        let handle = client.handle.clone();
        let opened = run(move || {
            (0..count).map(|_| Queue::open(&handle, depth, spin).map(Arc::new)).collect()
        });
        let queues: Vec<Arc<Queue>> = opened.await?;
        for queue in &queues {
            driver::start(queue)?;
        }
        Ok(AsyncClient { inner: Arc::new(Inner { client, queues, turn: AtomicUsize::new(0) }) })
    }
}

/// Runs a call that waits, on a thread of the runtime's for that.
async fn run<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(_) => Err(Error::new("run", Code::Closed)), // the runtime is ending
    }
}

impl AsyncClient {
    /// Connects with the defaults: to `$PICKD_SOCKET`, else `/run/pickd/pickd.sock`.
    ///
    /// # Errors
    /// Those of [`Options::open_async`].
    pub async fn open() -> Result<AsyncClient, Error> {
        Options::new().open_async().await
    }

    /// What the daemon granted at open.
    ///
    /// # Errors
    /// Those of [`Client::info`].
    pub fn info(&self) -> Result<Info, Error> {
        self.inner.client.info()
    }

    /// Picks an endpoint and reserves its load. Report on the ticket of the result.
    ///
    /// Dropping the future takes the pick back: nothing stays reserved. Without a deadline it waits
    /// for a daemon that is there and does not answer; see [`AsyncClient::pick_within`].
    ///
    /// # Errors
    /// [`Code::NoEndpoint`], [`Code::Shed`], [`Code::Limited`], [`Code::NotFound`],
    /// [`Code::Invalid`], [`Code::TooBig`], [`Code::NotConnected`] (only where no endpoint is
    /// known), [`Code::Closed`], [`Code::Forked`].
    pub fn pick<'a>(&'a self, request: &'a Request<'a>) -> PickFuture<'a> {
        PickFuture::new(self.queue(), request, None)
    }

    /// [`AsyncClient::pick`] with a deadline: where the daemon has not answered shortly before it,
    /// the library answers, and [`Pick::is_degraded`](crate::Pick::is_degraded) says so.
    ///
    /// # Errors
    /// Those of [`AsyncClient::pick`], and [`Code::Timeout`]: no endpoint is known, or so many
    /// picks are outstanding that this one was not submitted in time.
    pub fn pick_within<'a>(
        &'a self,
        request: &'a Request<'a>,
        longest: Duration,
    ) -> PickFuture<'a> {
        PickFuture::new(self.queue(), request, Some(longest))
    }

    fn queue(&self) -> &Queue {
        let queues = &self.inner.queues;
        match queues.as_slice() {
            [only] => only,
            // Partner: itself; any order of turns will do.
            many => &many[self.inner.turn.fetch_add(1, Ordering::Relaxed) % many.len()],
        }
    }

    /// Hands a report over and returns, without waiting; so it may be called in a `Drop`. What the
    /// daemon makes of it is counted there. One that finds the ring full goes into it a moment
    /// later, and errors of that are not told. Reports on one ticket arrive in the order of the
    /// calls.
    ///
    /// While the daemon is away reports on degraded picks succeed, and so does the end of a request
    /// of this client, whose reservation the daemon releases when it is back, without its usage;
    /// others fail with [`Code::NotConnected`], and may be repeated then.
    ///
    /// # Errors
    /// [`Code::NotConnected`], [`Code::Limited`] (65,536 wait for room already), [`Code::Invalid`],
    /// [`Code::TooBig`], [`Code::Closed`], [`Code::Forked`].
    pub fn report(&self, report: &Report) -> Result<(), Error> {
        // By ticket, so that all of one stay in order.
        let queues = &self.inner.queues;
        let at = report.ticket.sequence % queues.len() as u64;
        queues[at as usize].report(report)
    }

    /// Reports, and waits for what the daemon says. It holds a thread of the runtime's for blocking
    /// calls meanwhile: for tests and for who must know. Dropping the future does not take the
    /// report back.
    ///
    /// # Errors
    /// Those of [`Client::report_and_wait`].
    pub async fn report_and_wait(&self, report: &Report, longest: Duration) -> Result<(), Error> {
        let (client, report) = (self.inner.client.clone(), report.clone());
        run(move || client.report_and_wait(&report, longest)).await
    }

    /// The same connection for blocking calls, such as changes of endpoints: for
    /// `tokio::task::spawn_blocking`, into which a clone can be moved.
    pub fn blocking(&self) -> &Client {
        &self.inner.client
    }

    /// Ends what is under way with [`Code::Closed`]; no clone can pick or report any more. A second
    /// call does nothing.
    pub fn close(&self) {
        self.inner.queues.iter().for_each(|queue| queue.end());
    }
}

impl std::fmt::Debug for AsyncClient {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("AsyncClient").field("queues", &self.inner.queues.len()).finish()
    }
}
