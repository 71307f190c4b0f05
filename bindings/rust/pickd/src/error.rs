//! Errors: libpickd's codes as a Rust error. What each means is said in pickd.h.

use std::ffi::CStr;
use std::fmt;

use pickd_sys as sys;

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// No ready endpoint, or none that the subset allows.
    NoEndpoint,
    /// The filters left nobody, or the priority is negative and the pool is saturated.
    Shed,
    /// This user is over a limit of the daemon, or (of a report) there is no room for it now.
    Limited,
    /// No endpoint serves this model, or none has this name.
    NotFound,
    /// An argument is malformed; [`Error::detail`] says which.
    Invalid,
    /// A string or a list is over its limit.
    TooBig,
    /// An endpoint of this name exists already.
    Exists,
    /// The mode of the daemon's socket does not let this user connect.
    Access,
    /// The daemon's configuration does not let this user do that.
    Permission,
    /// The ticket is unknown, or its request has ended already.
    Stale,
    /// The handle was made before fork(), and this is the child.
    Forked,
    /// The deadline passed; of a pick: nothing stays reserved.
    Timeout,
    /// The daemon is away; of a pick: nor is an endpoint known to pick without it.
    NotConnected,
    /// The daemon answered what the library cannot read.
    Protocol,
    /// The daemon speaks another layout: install the same release of both.
    Version,
    /// The daemon has all the clients or channels that it may have, or this process all
    /// descriptors.
    TooMany,
    /// Out of memory.
    NoMemory,
    /// The client was closed, or the runtime that it was opened in has ended.
    Closed,
    /// There is no body, or it has no such prompt.
    NoData,
    /// A body is not JSON, or is cut short.
    Malformed,
    /// A body is compressed.
    Unsupported,
    /// An errno value that this crate has no name for.
    Other(i32),
}

/// Each code with its errno value.
const CODES: [(Code, i32); 21] = [
    (Code::NoEndpoint, libc::EHOSTUNREACH),
    (Code::Shed, libc::EBUSY),
    (Code::Limited, libc::EAGAIN),
    (Code::NotFound, libc::ENOENT),
    (Code::Invalid, libc::EINVAL),
    (Code::TooBig, libc::E2BIG),
    (Code::Exists, libc::EEXIST),
    (Code::Access, libc::EACCES),
    (Code::Permission, libc::EPERM),
    (Code::Stale, libc::ESTALE),
    (Code::Forked, libc::EOWNERDEAD),
    (Code::Timeout, libc::ETIMEDOUT),
    (Code::NotConnected, libc::ENOTCONN),
    (Code::Protocol, libc::EPROTO),
    (Code::Version, libc::EPROTONOSUPPORT),
    (Code::TooMany, libc::EMFILE),
    (Code::NoMemory, libc::ENOMEM),
    (Code::Closed, libc::ESHUTDOWN),
    (Code::NoData, libc::ENODATA),
    (Code::Malformed, libc::EBADMSG),
    (Code::Unsupported, libc::EOPNOTSUPP),
];

impl Code {
    /// The code of an errno value (positive, as in `errno.h`).
    pub fn from_errno(errno: i32) -> Code {
        if errno == libc::ENFILE {
            return Code::TooMany; // the machine's descriptors, in place of this process's
        }
        let known = CODES.iter().find(|(_, value)| *value == errno);
        known.map_or(Code::Other(errno), |(code, _)| *code)
    }

    /// The errno value, positive.
    pub fn errno(self) -> i32 {
        match self {
            Code::Other(errno) => errno,
            code => CODES.iter().find(|(known, _)| *known == code).map_or(libc::EIO, |c| c.1),
        }
    }

    /// What a gateway answers to its client when a pick fails so: 503, 429, 404 or 400 as pickd.h
    /// has it, 504 for a deadline, 503 for the rest.
    pub fn http_status(self) -> u16 {
        match self {
            Code::Shed | Code::Limited => 429,
            Code::NotFound => 404,
            Code::Invalid | Code::TooBig => 400,
            Code::Timeout => 504,
            _ => 503,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Those that are not libpickd's.
        match self {
            Code::Closed => return to.write_str("the client is closed"),
            Code::NoData => return to.write_str("there is nothing to read"),
            Code::Malformed => return to.write_str("it cannot be read"),
            Code::Unsupported => return to.write_str("its encoding is not supported"),
            _ => {}
        }
        // SAFETY: takes any value, and returns a constant string that is terminated.
        let words = unsafe { CStr::from_ptr(sys::pickd_strerror(-self.errno())) };
        to.write_str(&words.to_string_lossy())
    }
}

/// A failure of libpickd.
#[derive(Clone)]
pub struct Error(Box<Failure>); // one pointer, so that it does not make every answer larger

#[derive(Clone, Debug)]
struct Failure {
    op: &'static str,
    code: Code,
    detail: Option<Box<str>>,
}

impl Error {
    pub(crate) fn new(op: &'static str, code: Code) -> Error {
        Error(Box::new(Failure { op, code, detail: None }))
    }

    pub(crate) fn with_detail(mut self, detail: String) -> Error {
        self.0.detail = (!detail.is_empty()).then(|| detail.into_boxed_str());
        self
    }

    /// What kind of failure it was.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What was being done: "pick", "open", "report", ...
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The library's words on what was wrong, where it has any. Those of a client may be of another
    /// thread's failure that came between.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// What a gateway answers: see [`Code::http_status`].
    pub fn http_status(&self) -> u16 {
        self.0.code.http_status()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "pickd: {}: {}", self.0.op, self.0.code)?;
        match &self.0.detail {
            Some(detail) => write!(to, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        std::io::Error::new(std::io::Error::from_raw_os_error(error.0.code.errno()).kind(), error)
    }
}

/// A value of the library, 0 or negative, as a result.
pub(crate) fn check(op: &'static str, value: i32) -> Result<(), Error> {
    if value >= 0 {
        Ok(())
    } else {
        Err(Error::new(op, Code::from_errno(value.saturating_neg())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_from_its_errno_and_no_two_share_one() {
        for (code, errno) in CODES {
            assert_eq!(Code::from_errno(errno), code);
            assert_eq!(code.errno(), errno);
        }
        assert_eq!(Code::from_errno(9999), Code::Other(9999));
        assert_eq!(Code::Other(9999).errno(), 9999);
    }

    #[test]
    fn statuses_are_those_of_the_header() {
        let said = |errno| Code::from_errno(errno).http_status();
        assert_eq!(said(libc::EHOSTUNREACH), 503);
        assert_eq!(said(libc::EBUSY), 429);
        assert_eq!(said(libc::EAGAIN), 429);
        assert_eq!(said(libc::ENOENT), 404);
        assert_eq!(said(libc::EINVAL), 400);
        assert_eq!(said(libc::E2BIG), 400);
        assert_eq!(said(libc::ETIMEDOUT), 504);
        assert_eq!(said(libc::ENOTCONN), 503);
        assert_eq!(Code::Closed.http_status(), 503);
    }

    #[test]
    fn negative_values_are_errors_and_the_least_of_all_does_not_overflow() {
        assert!(check("pick", 0).is_ok());
        assert_eq!(check("pick", -libc::EBUSY).unwrap_err().code(), Code::Shed);
        assert_eq!(check("pick", i32::MIN).unwrap_err().code(), Code::Other(i32::MAX));
    }
}
