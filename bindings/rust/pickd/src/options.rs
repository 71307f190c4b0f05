//! Options of a client, for both kinds.

use std::ffi::{c_char, CString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pickd_sys as sys;

use crate::error::{Code, Error};

/// How to connect to the daemon of this node. The defaults are right for most.
///
/// ```
/// # fn main() -> Result<(), pickd::Error> {
/// # if std::env::var_os("PICKD_SOCKET").is_none() { return Ok(()) } // no daemon to ask
/// let client = pickd::Options::new().name("router").keys_max(4096).open()?;
/// println!("pickd {}", client.info()?.version);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) socket: Option<PathBuf>,
    pub(crate) name: Option<String>,
    pub(crate) keys_max: u32,
    pub(crate) channels_max: u32,
    pub(crate) connect_timeout: Option<Duration>,
    pub(crate) spin: Option<Duration>,
    pub(crate) busy_poll: bool,
    #[cfg(feature = "async")]
    pub(crate) queues: usize,
    #[cfg(feature = "async")]
    pub(crate) depth: u32,
}

impl Options {
    /// The defaults.
    pub fn new() -> Options {
        Options::default()
    }

    /// Path of the daemon's socket. Default: `$PICKD_SOCKET`, else `/run/pickd/pickd.sock`.
    pub fn socket(mut self, path: impl AsRef<Path>) -> Options {
        self.socket = Some(path.as_ref().to_owned());
        self
    }

    /// Shown to operators. Default: the name of the program.
    pub fn name(mut self, name: impl Into<String>) -> Options {
        self.name = Some(name.into());
        self
    }

    /// The longest prompt in prefix blocks, 16 to 16384; 0: 2048, which is 131,072 tokens of 64 a
    /// block. The daemon may grant less. Longer prompts are cut, and the pick says so.
    pub fn keys_max(mut self, blocks: u32) -> Options {
        self.keys_max = blocks;
        self
    }

    /// Blocking picks that may wait at once, 1 to 1024; 0: 64. More wait for their turn.
    pub fn channels_max(mut self, count: u32) -> Options {
        self.channels_max = count;
        self
    }

    /// How long opening may take. Default: 2 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Options {
        self.connect_timeout = Some(timeout);
        self
    }

    /// How long a pick looks for its answer at most before it sleeps; it looks less while that
    /// fails. Of async picks only one that is alone in its queue looks, and the thread that polls
    /// it is its own for that time. Default: 50 microseconds, of async picks 20; zero: sleep at
    /// once.
    pub fn spin(mut self, longest: Duration) -> Options {
        self.spin = Some(longest);
        self
    }

    /// Blocking calls never sleep, until their deadline: lowest latency for a core given away. The
    /// daemon has `workers.busy_poll`. Async picks wait for their descriptor all the same.
    pub fn busy_poll(mut self, on: bool) -> Options {
        self.busy_poll = on;
        self
    }

    /// How many asynchronous queues an [`AsyncClient`](crate::AsyncClient) has, each with a channel
    /// to the daemon and a task of its own; 0: one for four processors, at most 8. One gives the
    /// largest batches.
    #[cfg(feature = "async")]
    pub fn queues(mut self, count: usize) -> Options {
        self.queues = count;
        self
    }

    /// How many picks of one queue may be outstanding, 1 to 4096; 0: 1024. Further ones wait their
    /// turn.
    #[cfg(feature = "async")]
    pub fn depth(mut self, picks: u32) -> Options {
        self.depth = picks;
        self
    }

    /// Calls `with` with the library's options, good for that time. Words of a failure to
    /// open go into `words`.
    pub(crate) fn with_raw<T>(
        &self,
        words: &mut [c_char],
        with: impl FnOnce(&sys::pickd_options) -> T,
    ) -> Result<T, Error> {
        let socket = self.socket.as_deref().map(|path| terminated(path.as_os_str())).transpose()?;
        let name = self.name.as_deref().map(terminated).transpose()?;
        let pointer =
            |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |t| t.as_ptr());
        Ok(with(&sys::pickd_options {
            struct_size: std::mem::size_of::<sys::pickd_options>(),
            socket_path: pointer(&socket),
            name: pointer(&name),
            keys_max: self.keys_max,
            channels_max: self.channels_max,
            spin_us: match self.spin {
                None => 0,
                Some(Duration::ZERO) => sys::PICKD_NO_SPIN,
                Some(longest) => below(longest.as_micros(), sys::PICKD_NO_SPIN - 1).max(1),
            },
            connect_timeout_ms: self
                .connect_timeout
                .map_or(0, |longest| below(longest.as_millis(), u32::MAX).max(1)),
            flags: if self.busy_poll { sys::PICKD_OPEN_BUSY_POLL } else { 0 },
            error: words.as_mut_ptr(),
            error_size: words.len(),
        }))
    }
}

fn below(value: u128, limit: u32) -> u32 {
    u32::try_from(value).map_or(limit, |value| value.min(limit))
}

/// A string for C.
pub(crate) fn terminated(text: impl AsRef<std::ffi::OsStr>) -> Result<CString, Error> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(text.as_ref().as_bytes()).map_err(|_| {
        Error::new("open", Code::Invalid).with_detail("a string with a NUL byte in it".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spin_us(options: &Options) -> u32 {
        options.with_raw(&mut [], |raw| raw.spin_us).unwrap()
    }

    #[test]
    fn durations_keep_apart_none_zero_and_too_long() {
        assert_eq!(spin_us(&Options::new()), 0);
        assert_eq!(spin_us(&Options::new().spin(Duration::ZERO)), sys::PICKD_NO_SPIN);
        assert_eq!(spin_us(&Options::new().spin(Duration::from_nanos(1))), 1);
        assert_eq!(spin_us(&Options::new().spin(Duration::MAX)), sys::PICKD_NO_SPIN - 1);
        let brief = Options::new().connect_timeout(Duration::from_micros(10));
        assert_eq!(brief.with_raw(&mut [], |raw| raw.connect_timeout_ms).unwrap(), 1);
    }

    #[test]
    fn strings_are_terminated_and_those_with_nul_bytes_are_refused() {
        let named = Options::new().name("router").socket("/s");
        let told = named.with_raw(&mut [], |raw| {
            // SAFETY: terminated, and good for this call.
            unsafe {
                (std::ffi::CStr::from_ptr(raw.name), std::ffi::CStr::from_ptr(raw.socket_path))
                    == (c("router\0"), c("/s\0"))
            }
        });
        assert!(told.unwrap());
        assert_eq!(
            Options::new().name("a\0b").with_raw(&mut [], |_| ()).unwrap_err().code(),
            Code::Invalid
        );
    }

    fn c(text: &str) -> &std::ffi::CStr {
        std::ffi::CStr::from_bytes_with_nul(text.as_bytes()).unwrap()
    }
}
