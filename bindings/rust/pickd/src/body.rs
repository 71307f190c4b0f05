//! Reads request bodies into requests for a pick, and answers into reports (libpickd-body).
//!
//! OpenAI completions, chat completions, responses and embeddings, Anthropic messages, SGLang's and
//! vLLM's own: from path, headers and JSON to model, prompt, salt, session and so on. Bodies that
//! cannot be read give a request without a prompt, which is picked by load; the engine answers as
//! it always did. What goes into the prompt is said in `pickd/body.h`.
//!
//! ```
//! use pickd::body::{Answer, AnswerHead, Body, Head, Prompt};
//!
//! # fn main() -> Result<(), pickd::Error> {
//! let mut body = Body::new(&Default::default())?;
//! let head = Head::new("/v1/chat/completions").header("x-session-id", "conversation-7");
//! let bytes = br#"{"model": "m", "stream": true, "messages": [{"role": "user", "content":
//! "Hi"}]}"#; body.begin(&head)?;
//! body.add(bytes)?; // as many pieces as there are
//! if let Err(error) = body.end() {
//!     println!("picked by load: {error}");
//! }
//! let request = body.request(Prompt::Longest)?; // for Client::pick() or AsyncClient::pick()
//! assert!(body.info()?.stream);
//! # drop(request);
//!
//! let ticket = pickd::Ticket::default(); // of the pick
//! let mut answer = Answer::new(&Default::default())?;
//! let head = AnswerHead::new(body.info()?.api, 200).header("content-type", "text/event-stream");
//! answer.begin(&head)?;
//! let event = b"data: {\"choices\": [{\"delta\": {\"content\": \"Hello\"}}]}\n\n";
//! assert!(answer.add(event)?.first_token);
//! let report = answer.report(ticket).expect("a token came");
//! assert_eq!(report.kind, pickd::ReportKind::FirstToken);
//! # Ok(())
//! # }
//! ```

mod answer;

use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use pickd_sys as sys;
use pickd_sys::body as raw;

pub use answer::{Answer, AnswerHead, AnswerOptions, Events};

use crate::error::{check, Error};
use crate::options::terminated;
use crate::request::{slice_of, Request, EMPTY, NOTHING};

/// A failure with libpickd-body's words, which say what it means of a body.
fn check_body(op: &'static str, value: i32) -> Result<(), Error> {
    check(op, value).map_err(|error| {
        // SAFETY: takes any value, and returns a constant string that is terminated.
        let words = unsafe { CStr::from_ptr(raw::pickd_body_strerror(value)) };
        error.with_detail(words.to_string_lossy().into_owned())
    })
}

// ---- Counters -----------------------------------------------------------------------------------

/// Counts for all readers that were made with it: bodies, and those without a prefix by reason.
/// Clones share the counts.
#[derive(Clone)]
pub struct Counters(Arc<RawCounters>);

struct RawCounters(NonNull<raw::pickd_body_counters>);

// SAFETY: "pickd_body_counters may be used by any number of threads at once" (body.h).
unsafe impl Send for RawCounters {}
// SAFETY: as above.
unsafe impl Sync for RawCounters {}

impl Drop for RawCounters {
    fn drop(&mut self) {
        // SAFETY: readers keep a clone, so none uses them any more.
        unsafe { raw::pickd_body_counters_free(self.0.as_ptr()) }
    }
}

/// One of [`Counters`], for a metrics page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// As "bodies_malformed_total".
    pub name: &'static str,
    /// One line of words.
    pub help: &'static str,
    /// Since the counters were made.
    pub value: u64,
}

impl Counters {
    /// Counters that are all 0.
    ///
    /// # Errors
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn new() -> Result<Counters, Error> {
        // SAFETY: no arguments.
        let made = NonNull::new(unsafe { raw::pickd_body_counters_new() });
        let made = made.ok_or_else(|| Error::new("body", crate::Code::NoMemory))?;
        Ok(Counters(Arc::new(RawCounters(made))))
    }

    /// All counters as they are now.
    pub fn read(&self) -> Vec<Counter> {
        let mut all = Vec::new();
        loop {
            let mut help = std::ptr::null();
            // SAFETY: constant strings, terminated; NULL behind the last.
            let (name, help) = unsafe {
                let name = raw::pickd_body_counter_name(all.len(), &mut help);
                if name.is_null() {
                    return all;
                }
                (CStr::from_ptr(name), CStr::from_ptr(help))
            };
            // SAFETY: the counters are alive, and any thread may read them.
            let value = unsafe { raw::pickd_body_counter_value(self.as_ptr(), all.len()) };
            let words = |text: &'static CStr| text.to_str().unwrap_or("");
            all.push(Counter { name: words(name), help: words(help), value });
        }
    }

    fn as_ptr(&self) -> *mut raw::pickd_body_counters {
        self.0 .0.as_ptr()
    }
}

fn pointer(counters: &Option<Counters>) -> *mut raw::pickd_body_counters {
    counters.as_ref().map_or(std::ptr::null_mut(), Counters::as_ptr)
}

// ---- Bodies -------------------------------------------------------------------------------------

/// Options of a [`Body`]; 0 and None stand for the defaults.
#[derive(Clone, Default)]
pub struct BodyOptions {
    /// Longer bodies are not read; 0: 32 MiB; at most 1 GiB.
    pub body_bytes_max: usize,
    /// Memory for longer bodies is given back after them; 0: 4 MiB.
    pub keep_bytes_max: usize,
    /// Prompt tokens that an image, a sound or a video is taken for, 1 to 65536; 0: 576.
    pub media_tokens: u32,
    /// The header that names the session; None: x-session-id, then x-claude-code-session-id, then
    /// x-session-affinity.
    pub session_header: Option<String>,
    /// None: not counted.
    pub counters: Option<Counters>,
}

/// What comes before a body.
pub struct Head<'a> {
    path: sys::pickd_slice,
    headers: Vec<sys::pickd_attribute>,
    tenant: sys::pickd_slice,
    body_bytes: usize,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: its pointers are shared borrows of bytes for 'a, and are only read.
unsafe impl Send for Head<'_> {}
// SAFETY: as above.
unsafe impl Sync for Head<'_> {}

impl<'a> Head<'a> {
    /// The path with or without query: "/v1/chat/completions?x=1".
    pub fn new(path: &'a (impl AsRef<[u8]> + ?Sized)) -> Head<'a> {
        Head {
            path: slice_of(path.as_ref()),
            headers: Vec::new(),
            tenant: NOTHING,
            body_bytes: 0,
            borrowed: PhantomData,
        }
    }

    /// A header, its name in any case. The session, x-request-id, the fairness id and
    /// content-encoding are looked at; of two of one name the first counts.
    pub fn header(
        mut self,
        name: &'a (impl AsRef<[u8]> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        let (key, value) = (slice_of(name.as_ref()), slice_of(value.as_ref()));
        self.headers.push(sys::pickd_attribute { key, value });
        self
    }

    /// Told by the gateway, not by the client: requests of different tenants share no prefix.
    pub fn tenant(mut self, tenant: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.tenant = slice_of(tenant.as_ref());
        self
    }

    /// Content-length, for memory at once; 0: unknown.
    pub fn body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }
}

/// The API of a body, by its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// None that is known.
    #[default]
    Unknown,
    /// OpenAI /v1/completions.
    Completions,
    /// OpenAI /v1/chat/completions.
    Chat,
    /// OpenAI /v1/responses.
    Responses,
    /// OpenAI /v1/embeddings.
    Embeddings,
    /// Anthropic /v1/messages.
    Messages,
    /// SGLang /generate.
    Sglang,
    /// vLLM /inference/v1/generate: token ids.
    Vllm,
}

const APIS: [Api; 8] = [
    Api::Unknown,
    Api::Completions,
    Api::Chat,
    Api::Responses,
    Api::Embeddings,
    Api::Messages,
    Api::Sglang,
    Api::Vllm,
];

/// Which prompt of a body is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// The longest one, with the tokens of all of them.
    Longest,
    /// The one of this index.
    Index(usize),
}

/// What a body told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyInfo<'a> {
    /// By its path.
    pub api: Api,
    /// The answer is to be streamed.
    pub stream: bool,
    /// The stream is to tell usage in its last event.
    pub usage: bool,
    /// The answer goes on with the last message's text.
    pub open_end: bool,
    /// Answers asked for of each prompt; 1 when the body does not say.
    pub n: u32,
    /// Of one answer, where the body says.
    pub max_tokens: Option<u32>,
    /// Prompts that can be asked for by index.
    pub prompt_count: u32,
    /// Images, sounds, videos and files.
    pub media_count: u32,
    /// The model's name.
    pub model: &'a [u8],
    /// The adapter's name.
    pub adapter: &'a [u8],
    /// Session; above 255 bytes: a digest of it.
    pub session_id: &'a [u8],
    /// Likewise.
    pub request_id: &'a [u8],
    /// Likewise.
    pub fairness_id: &'a [u8],
    /// The whole body as it came, to pass on; empty over the limit.
    pub bytes: &'a [u8],
}

/// A reader of bodies, one at a time: keep one for each request that is handled at once. It may go
/// from thread to thread.
pub struct Body {
    raw: NonNull<raw::pickd_body>,
    _counters: Option<Counters>, // which must outlive it
}

// SAFETY: it belongs to one thread at a time, not to a certain one.
unsafe impl Send for Body {}

impl Drop for Body {
    fn drop(&mut self) {
        // SAFETY: what it handed out borrows it, so nothing uses it any more.
        unsafe { raw::pickd_body_free(self.raw.as_ptr()) }
    }
}

impl Body {
    /// Makes a reader, for any number of bodies.
    ///
    /// # Errors
    /// [`Code::Invalid`](crate::Code::Invalid) for an option out of range,
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn new(options: &BodyOptions) -> Result<Body, Error> {
        let header: Option<CString> =
            options.session_header.as_ref().map(terminated).transpose()?;
        let wanted = raw::pickd_body_options {
            struct_size: std::mem::size_of::<raw::pickd_body_options>(),
            body_bytes_max: options.body_bytes_max,
            keep_bytes_max: options.keep_bytes_max,
            media_tokens: options.media_tokens,
            flags: 0,
            session_header: header.as_ref().map_or(std::ptr::null(), |name| name.as_ptr()),
            counters: pointer(&options.counters),
        };
        let mut made = std::ptr::null_mut();
        // SAFETY: both are good for the call; the counters are kept as long as the reader.
        check_body("body", unsafe { raw::pickd_body_new(&wanted, &mut made) })?;
        let made = NonNull::new(made).ok_or_else(|| Error::new("body", crate::Code::NoMemory))?;
        Ok(Body { raw: made, _counters: options.counters.clone() })
    }

    /// Begins a body; what was read before is gone.
    ///
    /// # Errors
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn begin(&mut self, head: &Head<'_>) -> Result<(), Error> {
        let told = raw::pickd_body_head {
            struct_size: std::mem::size_of::<raw::pickd_body_head>(),
            path: head.path,
            headers: head.headers.as_ptr(),
            header_count: head.headers.len(),
            header_stride: 0,
            tenant: head.tenant,
            body_bytes: head.body_bytes,
        };
        // SAFETY: it points into the head, and what is needed of it is copied.
        check_body("body", unsafe { raw::pickd_body_begin(self.raw.as_ptr(), &told) })
    }

    /// Adds the next piece of the body, of any size; how a body is cut does not matter.
    ///
    /// # Errors
    /// [`Code::TooBig`](crate::Code::TooBig) (it is over the limit; the rest need not be added),
    /// [`Code::Invalid`](crate::Code::Invalid) (it was not begun, or has ended),
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn add(&mut self, piece: &[u8]) -> Result<(), Error> {
        // SAFETY: the piece is copied.
        check_body("body", unsafe {
            raw::pickd_body_add(self.raw.as_ptr(), piece.as_ptr().cast(), piece.len())
        })
    }

    /// Says that the body is complete and reads it. An error says why there is no prompt; the body
    /// can be asked on, and its request picked by load.
    ///
    /// # Errors
    /// [`Code::NoData`](crate::Code::NoData), [`Code::Malformed`](crate::Code::Malformed),
    /// [`Code::TooBig`](crate::Code::TooBig), [`Code::Unsupported`](crate::Code::Unsupported),
    /// [`Code::NotFound`](crate::Code::NotFound) (no API that is known has this path),
    /// [`Code::Invalid`](crate::Code::Invalid) (no prompt, or none of the API's forms),
    /// [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn end(&mut self) -> Result<(), Error> {
        // SAFETY: the reader is ours alone.
        check_body("body", unsafe { raw::pickd_body_end(self.raw.as_ptr()) })
    }

    /// What a pick is to be asked with; more can be told of it.
    ///
    /// # Errors
    /// [`Code::Invalid`](crate::Code::Invalid): the body has not ended, or has no such prompt.
    pub fn request(&self, prompt: Prompt) -> Result<Request<'_>, Error> {
        let index = match prompt {
            Prompt::Longest => raw::PICKD_BODY_LONGEST,
            Prompt::Index(index) => index,
        };
        let mut fields = EMPTY;
        // SAFETY: only fills the fields.
        check_body("body", unsafe {
            raw::pickd_body_request(self.raw.as_ptr(), index, &mut fields)
        })?;
        // SAFETY: what it points to lives until the next body, which a borrow of this one excludes.
        Ok(unsafe { Request::from_raw(fields) })
    }

    /// What the body told.
    ///
    /// # Errors
    /// [`Code::Invalid`](crate::Code::Invalid): it has not ended.
    pub fn info(&self) -> Result<BodyInfo<'_>, Error> {
        let mut info = raw::pickd_body_info {
            struct_size: std::mem::size_of::<raw::pickd_body_info>(),
            api: raw::PICKD_BODY_UNKNOWN,
            status: 0,
            flags: 0,
            n: 0,
            max_tokens: 0,
            prompt_count: 0,
            media_count: 0,
            reserved: 0,
            model: NOTHING,
            adapter: NOTHING,
            salt: NOTHING,
            session_id: NOTHING,
            request_id: NOTHING,
            fairness_id: NOTHING,
            bytes: NOTHING,
        };
        // SAFETY: only fills the struct.
        check_body("body", unsafe { raw::pickd_body_read_info(self.raw.as_ptr(), &mut info) })?;
        // SAFETY: as of request().
        let bytes = |slice| unsafe { bytes_of(slice) };
        Ok(BodyInfo {
            api: APIS.get(info.api as usize).copied().unwrap_or_default(),
            stream: info.flags & raw::PICKD_BODY_STREAM != 0,
            usage: info.flags & raw::PICKD_BODY_USAGE != 0,
            open_end: info.flags & raw::PICKD_BODY_OPEN_END != 0,
            n: info.n,
            max_tokens: (info.max_tokens != sys::PICKD_UNKNOWN).then_some(info.max_tokens),
            prompt_count: info.prompt_count,
            media_count: info.media_count,
            model: bytes(info.model),
            adapter: bytes(info.adapter),
            session_id: bytes(info.session_id),
            request_id: bytes(info.request_id),
            fairness_id: bytes(info.fairness_id),
            bytes: bytes(info.bytes),
        })
    }

    /// Appends the answer to the prompt, as the message that the caller will send with the next
    /// turn: [`Body::request`] then gives a prompt that the next turn's continues. The answer must
    /// have been begun with [`AnswerHead::keep_text`], and be read to its end.
    ///
    /// # Errors
    /// [`Code::NoData`](crate::Code::NoData) (no such prompt, or no text; nothing was appended),
    /// [`Code::Exists`](crate::Code::Exists) (one was appended before),
    /// [`Code::TooBig`](crate::Code::TooBig), [`Code::Invalid`](crate::Code::Invalid) (one has not
    /// ended, or the text was not kept), [`Code::NoMemory`](crate::Code::NoMemory).
    pub fn append(&mut self, answer: &Answer) -> Result<(), Error> {
        // SAFETY: both are ours for the call.
        check_body("body", unsafe { raw::pickd_body_append(self.raw.as_ptr(), answer.as_ptr()) })
    }
}

/// Bytes that the library hands out, good for as long as the caller says.
unsafe fn bytes_of<'a>(slice: sys::pickd_slice) -> &'a [u8] {
    if slice.size == 0 {
        return &[];
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(slice.data.cast(), slice.size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apis_are_numbered_as_in_the_header() {
        for (number, api) in APIS.iter().enumerate() {
            assert_eq!(*api as usize, number);
        }
        assert_eq!(Api::Vllm as u32, raw::PICKD_BODY_VLLM);
    }
}
