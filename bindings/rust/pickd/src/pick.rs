//! Pick: the answer as callers see it. It keeps the library's result and reads out of it what is
//! asked for; what results are made of is not known here.

use std::ffi::CStr;
use std::fmt;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::Duration;

use pickd_sys as sys;

use crate::error::{check, Code, Error};
use crate::pool::Pooled;

/// Names one picked request. It stays good across reconnects and daemon restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    /// The client that picked.
    pub client: u64,
    /// Its number there.
    pub sequence: u64,
}

impl Ticket {
    pub(crate) fn raw(self) -> sys::pickd_ticket {
        sys::pickd_ticket { client: self.client, sequence: self.sequence }
    }
}

impl From<sys::pickd_ticket> for Ticket {
    fn from(raw: sys::pickd_ticket) -> Ticket {
        Ticket { client: raw.client, sequence: raw.sequence }
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:x}/{}", self.client, self.sequence)
    }
}

/// What an endpoint does of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Prefill and decode.
    #[default]
    Both,
    /// Decode only.
    Decode,
    /// Prefill only.
    Prefill,
    /// Encode only.
    Encode,
}

impl Role {
    pub(crate) fn from_raw(raw: sys::pickd_role) -> Role {
        match raw {
            sys::PICKD_ROLE_DECODE => Role::Decode,
            sys::PICKD_ROLE_PREFILL => Role::Prefill,
            sys::PICKD_ROLE_ENCODE => Role::Encode,
            _ => Role::Both,
        }
    }

    pub(crate) fn raw(self) -> sys::pickd_role {
        match self {
            Role::Both => sys::PICKD_ROLE_BOTH,
            Role::Decode => sys::PICKD_ROLE_DECODE,
            Role::Prefill => sys::PICKD_ROLE_PREFILL,
            Role::Encode => sys::PICKD_ROLE_ENCODE,
        }
    }
}

/// Why the first endpoint of a [`Pick`] won.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// None that this crate knows.
    None,
    /// Highest score, alone.
    Score,
    /// Drawn at random among equals.
    Tie,
    /// Highest score, and the longest prefix match.
    Prefix,
    /// The endpoint of the session.
    Session,
    /// The only candidate.
    Only,
    /// A policy without scores, such as round-robin.
    Policy,
    /// Nobody is healthy: the least bad.
    Fallback,
    /// Picked by the library itself: the daemon is away.
    Degraded,
    /// By load and prefix: no model of latencies is ready for a profile that goes by them.
    Unpredicted,
}

const REASONS: [Reason; 10] = [
    Reason::None,
    Reason::Score,
    Reason::Tie,
    Reason::Prefix,
    Reason::Session,
    Reason::Only,
    Reason::Policy,
    Reason::Fallback,
    Reason::Degraded,
    Reason::Unpredicted,
];

impl Reason {
    fn from_raw(raw: sys::pickd_reason) -> Reason {
        REASONS.get(raw as usize).copied().unwrap_or(Reason::None)
    }

    /// In the library's word: "score", "tie", "prefix", ...
    pub fn name(self) -> &'static str {
        // SAFETY: takes any value, and returns a constant string that is terminated.
        let name = unsafe { CStr::from_ptr(sys::pickd_reason_name(self as sys::pickd_reason)) };
        name.to_str().unwrap_or("")
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

/// An endpoint of a [`Pick`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endpoint<'a> {
    /// As configured: "host:port" or a URL.
    pub address: &'a str,
    /// Its name.
    pub name: &'a str,
    /// What it does of the request.
    pub role: Role,
    /// Prompt tokens thought cached there; 0 of an encode endpoint.
    pub match_tokens: u32,
    /// What the scheduling profile gave it; 0 of a prefill or encode endpoint.
    pub score: f64,
}

/// The answer to a [`Request`](crate::Request): the winner, and fallbacks in order.
///
/// It holds a reservation at the winner until the end of the request is reported on its ticket, or
/// the reservation's lease is over; dropping it reports nothing.
pub struct Pick {
    filled: Pooled,
}

/// A result of the library with what was read out of it.
pub(crate) struct Filled {
    result: NonNull<sys::pickd_result>,
    ticket: Ticket,
    reason: Reason,
    flags: u32,
    address: Text,
    name: Text,
    details: OnceLock<Box<Details>>,
}

// SAFETY: a result belongs to one thread at a time, not to a certain one; this owns it.
unsafe impl Send for Filled {}
// SAFETY: a result belongs to one thread at a time. What a shared borrow reads of it was read when
// it was filled, or is read by the one thread that initialises `details`; the others wait for it.
// The strings do not move until the result is used again, which a borrow excludes.
unsafe impl Sync for Filled {}

impl Drop for Filled {
    fn drop(&mut self) {
        // SAFETY: this owned it. The strings that point into it go too.
        unsafe { sys::pickd_result_free(self.result.as_ptr()) }
    }
}

/// What most callers do not ask for.
struct Details {
    endpoints: Vec<RawEndpoint>,
    prefill: Option<RawEndpoint>,
    encode: Option<RawEndpoint>,
    prompt_tokens: u32,
    ttft_ms: f64,
    itl_ms: f64,
    hash_ns: u64,
}

struct RawEndpoint {
    address: Text,
    name: Text,
    role: Role,
    match_tokens: u32,
    score: f64,
}

impl RawEndpoint {
    fn view(&self) -> Endpoint<'_> {
        Endpoint {
            address: self.address.get(),
            name: self.name.get(),
            role: self.role,
            match_tokens: self.match_tokens,
            score: self.score,
        }
    }
}

/// A string of the result; a copy where it is not UTF-8.
enum Text {
    Kept(*const str),
    Copied(Box<str>),
}

// SAFETY: the string is not written to while the result, which its owner keeps, lists it.
unsafe impl Send for Text {}
// SAFETY: as above.
unsafe impl Sync for Text {}

impl Text {
    /// `text` is NULL, or a string that the library hands out.
    unsafe fn new(text: *const std::ffi::c_char) -> Text {
        if text.is_null() {
            return Text::Kept("");
        }
        // SAFETY: the library's strings are terminated.
        let bytes = unsafe { CStr::from_ptr(text) };
        match bytes.to_str() {
            Ok(valid) => Text::Kept(valid),
            Err(_) => Text::Copied(bytes.to_string_lossy().into()),
        }
    }

    fn get(&self) -> &str {
        match self {
            // SAFETY: the result is alive as long as the Pick that owns this.
            Text::Kept(text) => unsafe { &**text },
            Text::Copied(text) => text,
        }
    }
}

impl Filled {
    pub(crate) fn new() -> Result<Filled, Error> {
        // SAFETY: no arguments.
        let result = NonNull::new(unsafe { sys::pickd_result_new() })
            .ok_or_else(|| Error::new("pick", Code::NoMemory))?;
        Ok(Filled {
            result,
            ticket: Ticket::default(),
            reason: Reason::None,
            flags: 0,
            address: Text::Kept(""),
            name: Text::Kept(""),
            details: OnceLock::new(),
        })
    }

    /// For the library to fill; what was read before is forgotten.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut sys::pickd_result {
        self.details.take();
        self.result.as_ptr()
    }

    fn details(&self) -> &Details {
        self.details.get_or_init(|| {
            let raw = self.result.as_ptr();
            // SAFETY: nobody else reads the result: see the note on Sync.
            unsafe { Box::new(Details::read(raw)) }
        })
    }
}

impl Details {
    /// `raw` is a result that was filled, which this thread alone reads.
    unsafe fn read(raw: *const sys::pickd_result) -> Details {
        // SAFETY: as the caller says; the strings are good until the result is used again.
        unsafe {
            let count = sys::pickd_result_endpoint_count(raw);
            let prefill = sys::pickd_result_prefill_name(raw);
            let encode = sys::pickd_result_encode_name(raw);
            Details {
                endpoints: (0..count)
                    .map(|index| RawEndpoint {
                        address: Text::new(sys::pickd_result_address(raw, index)),
                        name: Text::new(sys::pickd_result_name(raw, index)),
                        role: Role::from_raw(sys::pickd_result_role(raw, index)),
                        match_tokens: sys::pickd_result_match_tokens(raw, index),
                        score: sys::pickd_result_score(raw, index),
                    })
                    .collect(),
                prefill: (!prefill.is_null()).then(|| RawEndpoint {
                    address: Text::new(sys::pickd_result_prefill_address(raw)),
                    name: Text::new(prefill),
                    role: Role::Prefill,
                    match_tokens: sys::pickd_result_prefill_match_tokens(raw),
                    score: 0.0,
                }),
                encode: (!encode.is_null()).then(|| RawEndpoint {
                    address: Text::new(sys::pickd_result_encode_address(raw)),
                    name: Text::new(encode),
                    role: Role::Encode,
                    match_tokens: 0,
                    score: 0.0,
                }),
                prompt_tokens: sys::pickd_result_prompt_tokens(raw),
                ttft_ms: sys::pickd_result_ttft_ms(raw),
                itl_ms: sys::pickd_result_itl_ms(raw),
                hash_ns: sys::pickd_result_hash_ns(raw),
            }
        }
    }
}

impl Pick {
    /// Takes a result that was filled, whatever its status.
    pub(crate) fn take(mut filled: Pooled) -> Result<Pick, Error> {
        let raw = filled.as_mut_ptr();
        // SAFETY: the result is ours alone; so are the strings of the winner, which it lists.
        unsafe {
            check("pick", sys::pickd_result_status(raw))?;
            filled.ticket = sys::pickd_result_ticket(raw).into();
            filled.reason = Reason::from_raw(sys::pickd_result_reason(raw));
            filled.flags = sys::pickd_result_flags(raw);
            filled.address = Text::new(sys::pickd_result_address(raw, 0));
            filled.name = Text::new(sys::pickd_result_name(raw, 0));
        }
        Ok(Pick { filled })
    }

    /// Names the request in reports.
    pub fn ticket(&self) -> Ticket {
        self.filled.ticket
    }

    /// Address of the winner, as configured.
    pub fn address(&self) -> &str {
        self.filled.address.get()
    }

    /// Name of the winner.
    pub fn name(&self) -> &str {
        self.filled.name.get()
    }

    /// Why the winner won.
    pub fn reason(&self) -> Reason {
        self.filled.reason
    }

    /// Whether the library picked by itself: the daemon is away.
    pub fn is_degraded(&self) -> bool {
        self.filled.flags & sys::PICKD_RESULT_DEGRADED != 0
    }

    /// Whether the prompt was longer than the key limit.
    pub fn is_cut(&self) -> bool {
        self.filled.flags & sys::PICKD_RESULT_CUT != 0
    }

    /// The winner, then fallbacks in order; at least one.
    pub fn endpoints(&self) -> impl ExactSizeIterator<Item = Endpoint<'_>> {
        self.filled.details().endpoints.iter().map(RawEndpoint::view)
    }

    /// Who computes the prompt first, of a request that is split.
    pub fn prefill(&self) -> Option<Endpoint<'_>> {
        self.filled.details().prefill.as_ref().map(RawEndpoint::view)
    }

    /// Who turns the request's extras into embeddings, where that is split off.
    pub fn encode(&self) -> Option<Endpoint<'_>> {
        self.filled.details().encode.as_ref().map(RawEndpoint::view)
    }

    /// Prompt tokens as used for the pick.
    pub fn prompt_tokens(&self) -> u32 {
        self.filled.details().prompt_tokens
    }

    /// Predicted time to the first token, where one is known.
    pub fn ttft(&self) -> Option<Duration> {
        predicted(self.filled.details().ttft_ms)
    }

    /// Predicted time between tokens, where one is known.
    pub fn itl(&self) -> Option<Duration> {
        predicted(self.filled.details().itl_ms)
    }

    /// What hashing the prompt took.
    pub fn hash_time(&self) -> Duration {
        Duration::from_nanos(self.filled.details().hash_ns)
    }
}

impl fmt::Debug for Pick {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Pick")
            .field("ticket", &self.filled.ticket)
            .field("reason", &self.filled.reason)
            .field("degraded", &self.is_degraded())
            .field("endpoints", &self.endpoints().collect::<Vec<_>>())
            .field("prefill", &self.prefill())
            .finish_non_exhaustive()
    }
}

/// NaN stands for "unknown"; what no duration can hold is as good as that.
fn predicted(ms: f64) -> Option<Duration> {
    if ms.is_nan() {
        return None;
    }
    Duration::try_from_secs_f64(ms / 1e3).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_numbered_as_in_the_header() {
        for (raw, reason) in REASONS.iter().enumerate() {
            assert_eq!(*reason as usize, raw);
            assert_eq!(Reason::from_raw(raw as sys::pickd_reason), *reason);
        }
        assert_eq!(Reason::Unpredicted as sys::pickd_reason, sys::PICKD_REASON_UNPREDICTED);
        assert_eq!(Reason::from_raw(1000), Reason::None);
    }

    #[test]
    fn roles_come_back_from_their_numbers() {
        for role in [Role::Both, Role::Decode, Role::Prefill, Role::Encode] {
            assert_eq!(Role::from_raw(role.raw()), role);
        }
        assert_eq!(Role::from_raw(1000), Role::Both);
    }

    #[test]
    fn a_prediction_that_is_none_is_told_as_none() {
        assert_eq!(predicted(f64::NAN), None);
        assert_eq!(predicted(-1.0), None);
        assert_eq!(predicted(f64::INFINITY), None);
        assert_eq!(predicted(1.5), Some(Duration::from_micros(1500)));
    }

    #[test]
    fn a_ticket_reads_as_in_the_daemons_logs() {
        assert_eq!(Ticket { client: 0xab, sequence: 12 }.to_string(), "ab/12");
    }
}
