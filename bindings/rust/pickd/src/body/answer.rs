//! Answers: what came with each piece, and the report at the end.

use std::marker::PhantomData;
use std::ptr::NonNull;

use pickd_sys as sys;
use pickd_sys::body as raw;

use super::{check_body, pointer, Api, Counters};
use crate::error::Error;
use crate::pick::Ticket;
use crate::report::{Report, ReportKind};
use crate::request::{slice_of, NOTHING};

/// Options of an [`Answer`]; 0 and None stand for the defaults.
#[derive(Clone, Default)]
pub struct AnswerOptions {
    /// Of an answer that is not streamed, and of one event; 0: 8 MiB; at most 1 GiB.
    pub answer_bytes_max: usize,
    /// Of text that is kept for [`Body::append`](super::Body::append); 0: 1 MiB.
    pub text_bytes_max: usize,
    /// Memory for longer answers is given back after them; 0: 256 KiB.
    pub keep_bytes_max: usize,
    /// None: not counted.
    pub counters: Option<Counters>,
}

/// What comes before the body of an answer.
pub struct AnswerHead<'a> {
    api: Api,
    status: u16,
    headers: Vec<sys::pickd_attribute>,
    flags: u32,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: its pointers are shared borrows of bytes for 'a, and are only read.
unsafe impl Send for AnswerHead<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnswerHead<'_> {}

impl<'a> AnswerHead<'a> {
    /// `api` is the request's, `status` of HTTP.
    pub fn new(api: Api, status: u16) -> AnswerHead<'a> {
        AnswerHead { api, status, headers: Vec::new(), flags: 0, borrowed: PhantomData }
    }

    /// A header. Content-type tells a stream of events, content-encoding whether it can be read.
    pub fn header(
        mut self,
        name: &'a (impl AsRef<[u8]> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        let (key, value) = (slice_of(name.as_ref()), slice_of(value.as_ref()));
        self.headers.push(sys::pickd_attribute { key, value });
        self
    }

    /// Keeps the text, for [`Body::append`](super::Body::append).
    pub fn keep_text(mut self) -> Self {
        self.flags |= raw::PICKD_ANSWER_KEEP_TEXT;
        self
    }
}

/// What came with a piece of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The first token; once an answer, of streams only.
    pub first_token: bool,
    /// Tokens.
    pub tokens: bool,
    /// Usage.
    pub usage: bool,
    /// The stream said that it is complete; once an answer.
    pub ended: bool,
}

/// A reader of answers, one at a time. It may go from thread to thread.
pub struct Answer {
    raw: NonNull<raw::pickd_answer>,
    _counters: Option<Counters>, // which must outlive it
}

// SAFETY: it belongs to one thread at a time, not to a certain one.
unsafe impl Send for Answer {}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: ours alone.
        unsafe { raw::pickd_answer_free(self.raw.as_ptr()) }
    }
}

impl Answer {
    /// Makes a reader, for any number of answers.
    ///
    /// # Errors
    /// [`Code::Invalid`](crate::Code::Invalid) for an option out of range,
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn new(options: &AnswerOptions) -> Result<Answer, Error> {
        let wanted = raw::pickd_answer_options {
            struct_size: std::mem::size_of::<raw::pickd_answer_options>(),
            answer_bytes_max: options.answer_bytes_max,
            text_bytes_max: options.text_bytes_max,
            keep_bytes_max: options.keep_bytes_max,
            counters: pointer(&options.counters),
        };
        let mut made = std::ptr::null_mut();
        // SAFETY: both are good for the call; the counters are kept as long as the reader.
        check_body("answer", unsafe { raw::pickd_answer_new(&wanted, &mut made) })?;
        let made = NonNull::new(made).ok_or_else(|| Error::new("answer", crate::Code::NoMemory))?;
        Ok(Answer { raw: made, _counters: options.counters.clone() })
    }

    pub(super) fn as_ptr(&self) -> *const raw::pickd_answer {
        self.raw.as_ptr()
    }

    /// Begins an answer, when its head has come; what was read before is gone.
    ///
    /// # Errors
    /// [`Code::Invalid`](crate::Code::Invalid) (a status below 100 or above 599),
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn begin(&mut self, head: &AnswerHead<'_>) -> Result<(), Error> {
        let told = raw::pickd_answer_head {
            struct_size: std::mem::size_of::<raw::pickd_answer_head>(),
            api: head.api as raw::pickd_body_api,
            status: head.status.into(),
            headers: head.headers.as_ptr(),
            header_count: head.headers.len(),
            header_stride: 0,
            flags: head.flags,
        };
        // SAFETY: it points into the head, and what is needed of it is copied.
        check_body("answer", unsafe { raw::pickd_answer_begin(self.raw.as_ptr(), &told) })
    }

    /// Adds the next piece of the answer's body, cut anywhere. Events that cannot be read are
    /// passed over and counted.
    ///
    /// # Errors
    /// [`Code::Invalid`](crate::Code::Invalid) (it was not begun, or has ended),
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn add(&mut self, piece: &[u8]) -> Result<Events, Error> {
        // SAFETY: the piece is read before the call returns.
        let came =
            unsafe { raw::pickd_answer_add(self.raw.as_ptr(), piece.as_ptr().cast(), piece.len()) };
        check_body("answer", came)?;
        Ok(Events {
            first_token: came & raw::PICKD_ANSWER_FIRST_TOKEN != 0,
            tokens: came & raw::PICKD_ANSWER_TOKENS != 0,
            usage: came & raw::PICKD_ANSWER_USAGE != 0,
            ended: came & raw::PICKD_ANSWER_ENDED != 0,
        })
    }

    /// Says that the answer's body is complete, whether it ended well or not. [`Answer::report`]
    /// can be asked after each error.
    ///
    /// # Errors
    /// [`Code::Malformed`](crate::Code::Malformed) (not JSON, or a stream that broke off),
    /// [`Code::TooBig`](crate::Code::TooBig), [`Code::Unsupported`](crate::Code::Unsupported)
    /// (compressed), [`Code::Invalid`](crate::Code::Invalid) (it was not begun).
    pub fn end(&mut self) -> Result<(), Error> {
        // SAFETY: the reader is ours alone.
        check_body("answer", unsafe { raw::pickd_answer_end(self.raw.as_ptr()) })
    }

    /// The report of what has come so far; None while there is nothing to report.
    ///
    /// While the answer goes on: the first token, then progress. After [`Answer::end`]: done,
    /// failed or cancelled. Whose caller went away reports [`Report::cancelled`] in its place.
    pub fn report(&self, ticket: Ticket) -> Option<Report> {
        let mut told = sys::pickd_report_info {
            struct_size: std::mem::size_of::<sys::pickd_report_info>(),
            ticket: ticket.raw(),
            kind: 0,
            prompt_tokens: sys::PICKD_UNKNOWN,
            cached_tokens: sys::PICKD_UNKNOWN,
            output_tokens: sys::PICKD_UNKNOWN,
            endpoint: NOTHING,
        };
        // SAFETY: only fills the struct.
        if unsafe { raw::pickd_answer_report(self.raw.as_ptr(), &mut told) } != 0 {
            return None;
        }
        let kind = match told.kind {
            sys::PICKD_REPORT_FIRST_TOKEN => ReportKind::FirstToken,
            sys::PICKD_REPORT_PROGRESS => ReportKind::Progress,
            sys::PICKD_REPORT_DONE => ReportKind::Done,
            sys::PICKD_REPORT_FAILED => ReportKind::Failed,
            sys::PICKD_REPORT_CANCELLED => ReportKind::Cancelled,
            _ => return None,
        };
        let known = |count| (count != sys::PICKD_UNKNOWN).then_some(count);
        Some(Report {
            prompt_tokens: known(told.prompt_tokens),
            cached_tokens: known(told.cached_tokens),
            output_tokens: known(told.output_tokens),
            ..Report::new(ticket, kind)
        })
    }
}
