//! The blocking client, and the handle that both clients share.

use std::ffi::{c_char, CStr};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use pickd_sys as sys;

use crate::error::{check, Code, Error};
use crate::options::Options;
use crate::pick::Pick;
use crate::pool::Pooled;
use crate::report::Report;
use crate::request::{microseconds, Request};

/// The library's client. Its functions may be called by any number of threads at once.
pub(crate) struct Handle(NonNull<sys::pickd_client>);

// SAFETY: "A pickd_client may be used by any number of threads at once" (pickd.h).
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle any more, and queues, which share it, are closed
        // before.
        unsafe { sys::pickd_close(self.0.as_ptr()) }
    }
}

impl Handle {
    pub(crate) fn as_ptr(&self) -> *mut sys::pickd_client {
        self.0.as_ptr()
    }

    /// A failure with the client's last words, where they say more than the code: which argument
    /// was wrong, and why something could not be opened.
    pub(crate) fn check(&self, op: &'static str, value: i32) -> Result<(), Error> {
        check(op, value).map_err(|error| match error.code() {
            Code::Invalid | Code::TooBig | Code::TooMany => error.with_detail(self.last_error()),
            _ => error,
        })
    }

    fn last_error(&self) -> String {
        let mut buffer = [0 as c_char; 256];
        // SAFETY: the library writes at most that many bytes, and always terminates them.
        let words = unsafe {
            sys::pickd_last_error(self.as_ptr(), buffer.as_mut_ptr(), buffer.len());
            CStr::from_ptr(buffer.as_ptr())
        };
        words.to_string_lossy().into_owned()
    }
}

/// What the daemon granted when a client was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Tokens in a prefix block.
    pub block_tokens: u32,
    /// The longest prompt in blocks.
    pub keys_max: u32,
    /// Of the daemon.
    pub version: String,
}

/// A connection to the daemon whose calls wait in the calling thread.
///
/// It is `Send` and `Sync`, and clones share the connection: any number of threads may use it at
/// once. The connection closes with the last clone; the daemon then releases reservations that were
/// not reported on. In a child of fork() every call fails with [`Code::Forked`]; open a client
/// there.
///
/// ```
/// use std::time::Duration;
///
/// # fn main() -> Result<(), pickd::Error> {
/// # if std::env::var_os("PICKD_SOCKET").is_none() { return Ok(()) } // no daemon to ask
/// let client = pickd::Client::open()?;
/// let request = pickd::Request::new().model("llama-3.1-70b").text("Once upon a time");
/// let pick = client.pick_within(&request, Duration::from_millis(100))?;
/// println!("{} ({})", pick.address(), pick.reason());
/// // ... send the request there, or to the next of pick.endpoints() where that fails ...
/// client.report(&pickd::Report::done(pick.ticket()).output_tokens(12))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) handle: Arc<Handle>,
}

impl Options {
    /// Connects.
    ///
    /// # Errors
    /// [`Code::NotConnected`] (nobody listens at the path), [`Code::Access`], [`Code::Permission`],
    /// [`Code::TooMany`], [`Code::Timeout`], [`Code::Version`], [`Code::Invalid`],
    /// [`Code::TooBig`], [`Code::NoMemory`].
    pub fn open(&self) -> Result<Client, Error> {
        let mut opened = std::ptr::null_mut();
        let mut words = [0 as c_char; 256];
        // SAFETY: both are good for the call.
        let code = self.with_raw(&mut words, |raw| unsafe { sys::pickd_open(raw, &mut opened) })?;
        check("open", code).map_err(|error| {
            // SAFETY: all zeros, or what the library put there and terminated.
            let words = unsafe { CStr::from_ptr(words.as_ptr()) };
            error.with_detail(words.to_string_lossy().into_owned())
        })?;
        let handle = NonNull::new(opened).ok_or_else(|| Error::new("open", Code::NoMemory))?;
        Ok(Client { handle: Arc::new(Handle(handle)) })
    }
}

impl Client {
    /// Connects with the defaults: to `$PICKD_SOCKET`, else `/run/pickd/pickd.sock`.
    ///
    /// # Errors
    /// Those of [`Options::open`].
    pub fn open() -> Result<Client, Error> {
        Options::new().open()
    }

    /// What the daemon granted at open.
    ///
    /// # Errors
    /// [`Code::Forked`].
    pub fn info(&self) -> Result<Info, Error> {
        let (mut block_tokens, mut keys_max, mut version) = (0, 0, std::ptr::null());
        let code = unsafe {
            // SAFETY: three places of this frame.
            sys::pickd_daemon_info(
                self.handle.as_ptr(),
                &mut block_tokens,
                &mut keys_max,
                &mut version,
            )
        };
        check("info", code)?;
        // SAFETY: terminated, and good as long as the client.
        let version = unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned();
        Ok(Info { block_tokens, keys_max, version })
    }

    /// Picks an endpoint and reserves its load. Report on the ticket of the result. Waits as long
    /// as the daemon is there and does not answer; see [`Client::pick_within`].
    ///
    /// # Errors
    /// [`Code::NoEndpoint`], [`Code::Shed`], [`Code::Limited`], [`Code::NotFound`],
    /// [`Code::Invalid`] (both text and token ids; extras out of order; endpoints_max over 8;
    /// priority out of range), [`Code::TooBig`], [`Code::NotConnected`] (only where no endpoint is
    /// known), [`Code::Forked`].
    pub fn pick(&self, request: &Request<'_>) -> Result<Pick, Error> {
        self.pick_us(request, sys::PICKD_NO_DEADLINE)
    }

    /// [`Client::pick`] with a deadline: where the daemon has not answered shortly before it, the
    /// library answers, and [`Pick::is_degraded`] says so.
    ///
    /// # Errors
    /// Those of [`Client::pick`], and [`Code::Timeout`] where no endpoint is known.
    pub fn pick_within(&self, request: &Request<'_>, longest: Duration) -> Result<Pick, Error> {
        let timeout_us = if longest.is_zero() { 0 } else { microseconds(longest) };
        self.pick_us(request, timeout_us)
    }

    fn pick_us(&self, request: &Request<'_>, timeout_us: i64) -> Result<Pick, Error> {
        let mut result = Pooled::get()?;
        let raw = request.raw(0);
        // SAFETY: `raw` points into the request, the result is ours.
        let code =
            unsafe { sys::pickd_pick(self.handle.as_ptr(), &raw, timeout_us, result.as_mut_ptr()) };
        self.handle.check("pick", code)?;
        Pick::take(result)
    }

    /// Hands a report over and returns; what the daemon makes of it is counted there.
    ///
    /// While the daemon is away reports on degraded picks succeed, and so does the end of a request
    /// of this client, whose reservation the daemon releases when it is back, without its usage;
    /// others fail with [`Code::NotConnected`], and may be repeated then.
    ///
    /// # Errors
    /// [`Code::Limited`] (no channel can take it now), [`Code::NotConnected`], [`Code::Invalid`],
    /// [`Code::TooBig`], [`Code::Forked`].
    pub fn report(&self, report: &Report) -> Result<(), Error> {
        self.report_us(report, 0)
    }

    /// Reports, and waits for what the daemon says.
    ///
    /// # Errors
    /// [`Code::Stale`] (unknown ticket, or its request ended already), [`Code::NotFound`] (no such
    /// fallback endpoint), [`Code::Permission`] (another user's ticket), [`Code::Timeout`] (it may
    /// yet be applied), and those of [`Client::report`].
    pub fn report_and_wait(&self, report: &Report, longest: Duration) -> Result<(), Error> {
        self.report_us(report, microseconds(longest))
    }

    fn report_us(&self, report: &Report, timeout_us: i64) -> Result<(), Error> {
        let raw = report.raw();
        // SAFETY: `raw` points into the report.
        let code = unsafe { sys::pickd_report(self.handle.as_ptr(), &raw, timeout_us) };
        self.handle.check("report", code)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Client").field("info", &self.info()).finish()
    }
}
