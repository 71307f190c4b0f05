//! Request: what callers fill in, in the library's own pieces, so that a pick converts little. The
//! only file that knows how the library's request is laid out.

use std::marker::PhantomData;
use std::time::Duration;

use pickd_sys as sys;

pub(crate) const NOTHING: sys::pickd_slice = sys::pickd_slice { data: std::ptr::null(), size: 0 };

/// Bytes as the library takes them; what they borrow must outlive the value.
pub(crate) fn slice_of(bytes: &[u8]) -> sys::pickd_slice {
    sys::pickd_slice { data: bytes.as_ptr().cast(), size: bytes.len() }
}

/// What is to be served. Only what is known need be told; an empty request is picked by load among
/// all endpoints.
///
/// Text is anything that has bytes (`&str`, `&[u8]`, `String`, ...); it is borrowed, need not be
/// UTF-8, and is hashed in this process: the prompt does not leave it.
///
/// ```
/// let prompt = String::from("You are a helpful assistant.");
/// let request = pickd::Request::new()
///     .model("llama-3.1-70b")
///     .text(&prompt)
///     .session_id("conversation-7")
///     .stream(true);
/// # drop(request);
/// ```
#[derive(Clone)]
pub struct Request<'a> {
    // What most requests tell stands here, the rest behind a pointer: a request lives in the memory
    // of the task that waits, where every line of it costs when there are many.
    model: sys::pickd_slice,
    session_id: sys::pickd_slice,
    text: sys::pickd_slice, // the prompt, while it is one segment
    text_count: usize,
    token_ids: *const u32,
    token_count: usize,
    prompt_tokens: u32,
    expected_output_tokens: u32,
    priority: i32,
    flags: u32,
    rare: Option<Box<Rare>>,
    borrowed: PhantomData<&'a [u8]>,
}

#[derive(Clone)]
struct Rare {
    adapter: sys::pickd_slice,
    salt: sys::pickd_slice,
    fairness_id: sys::pickd_slice,
    request_id: sys::pickd_slice,
    text: Vec<sys::pickd_slice>, // the prompt, when it is more than one segment
    extras: Vec<sys::pickd_extra>,
    subset: Vec<sys::pickd_slice>,
    attributes: Vec<sys::pickd_attribute>,
    slo_ttft_ms: f64,
    slo_itl_ms: f64,
    endpoints_max: u32,
}

impl Default for Rare {
    fn default() -> Rare {
        Rare {
            adapter: NOTHING,
            salt: NOTHING,
            fairness_id: NOTHING,
            request_id: NOTHING,
            text: Vec::new(),
            extras: Vec::new(),
            subset: Vec::new(),
            attributes: Vec::new(),
            slo_ttft_ms: 0.0,
            slo_itl_ms: 0.0,
            endpoints_max: 0,
        }
    }
}

// SAFETY: every pointer in it is a shared borrow of bytes or integers for 'a, and is only read.
unsafe impl Send for Request<'_> {}
// SAFETY: as above.
unsafe impl Sync for Request<'_> {}

impl Default for Request<'_> {
    fn default() -> Self {
        Request::new()
    }
}

impl<'a> Request<'a> {
    /// A request of which nothing is known.
    pub fn new() -> Request<'a> {
        Request {
            model: NOTHING,
            session_id: NOTHING,
            text: NOTHING,
            text_count: 0,
            token_ids: std::ptr::null(),
            token_count: 0,
            prompt_tokens: 0,
            expected_output_tokens: 0,
            priority: 0,
            flags: 0,
            rare: None,
            borrowed: PhantomData,
        }
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_with(Box::default)
    }

    /// At most 255 bytes; empty: any.
    pub fn model(mut self, model: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.model = slice_of(model.as_ref());
        self
    }

    /// LoRA adapter, at most 255 bytes. Its prefixes are its own.
    pub fn adapter(mut self, adapter: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.rare().adapter = slice_of(adapter.as_ref());
        self
    }

    /// Requests of different salts share no prefix (tenants). Any length.
    pub fn salt(mut self, salt: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.rare().salt = slice_of(salt.as_ref());
        self
    }

    /// Appends a segment to the prompt. Segments are joined without a separator; how the prompt is
    /// cut into them does not matter. Text or token ids, not both.
    pub fn text(mut self, segment: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        let segment = slice_of(segment.as_ref());
        match self.text_count {
            0 => self.text = segment,
            1 => {
                let first = self.text;
                self.rare().text.extend([first, segment]);
            }
            _ => self.rare().text.push(segment),
        }
        self.text_count += 1;
        self
    }

    /// The prompt as token ids.
    pub fn token_ids(mut self, ids: &'a [u32]) -> Self {
        self.token_ids = ids.as_ptr();
        self.token_count = ids.len();
        self
    }

    /// Tokens of the prompt; 0: the number of token ids, or a quarter of the bytes of text.
    pub fn prompt_tokens(mut self, tokens: u32) -> Self {
        self.prompt_tokens = tokens;
        self
    }

    /// Content that stands in the prompt but is not text: an image, audio, video. `digest` names it
    /// (16 to 64 bytes of any good hash), `offset` is where it stands: bytes of text, or token ids
    /// before it. Equal digests at equal places share prefix blocks, different ones never do. To be
    /// added in order of `offset`.
    pub fn extra(mut self, offset: usize, digest: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.rare().extras.push(sys::pickd_extra { offset, digest: slice_of(digest.as_ref()) });
        self
    }

    /// At most 255 bytes.
    pub fn session_id(mut self, id: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.session_id = slice_of(id.as_ref());
        self
    }

    /// At most 255 bytes.
    pub fn fairness_id(mut self, id: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.rare().fairness_id = slice_of(id.as_ref());
        self
    }

    /// At most 255 bytes; shown in explanations.
    pub fn request_id(mut self, id: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        self.rare().request_id = slice_of(id.as_ref());
        self
    }

    /// Names or addresses that the pick may go to, at most 512. Without this call: all. An empty
    /// list means nobody, and gives [`Code::NoEndpoint`](crate::Code::NoEndpoint).
    pub fn subset<T>(mut self, allowed: &'a [T]) -> Self
    where
        T: AsRef<[u8]>,
    {
        self.rare().subset = allowed.iter().map(|one| slice_of(one.as_ref())).collect();
        self.flag(sys::PICKD_REQUEST_SUBSET, true)
    }

    /// A header or label for plugins that ask for it; at most 32, key and value 255 bytes each.
    pub fn attribute(
        mut self,
        key: &'a (impl AsRef<[u8]> + ?Sized),
        value: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Self {
        let (key, value) = (slice_of(key.as_ref()), slice_of(value.as_ref()));
        self.rare().attributes.push(sys::pickd_attribute { key, value });
        self
    }

    /// Wanted time to the first token. Above one day: none, and counted.
    pub fn slo_ttft(mut self, wanted: Duration) -> Self {
        self.rare().slo_ttft_ms = wanted.as_secs_f64() * 1e3;
        self
    }

    /// Wanted time between tokens, likewise.
    pub fn slo_itl(mut self, wanted: Duration) -> Self {
        self.rare().slo_itl_ms = wanted.as_secs_f64() * 1e3;
        self
    }

    /// -32768 to 32767; 0 is the ordinary one, negative may be shed.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// 0: unknown.
    pub fn expected_output_tokens(mut self, tokens: u32) -> Self {
        self.expected_output_tokens = tokens;
        self
    }

    /// How many endpoints the pick lists, 1 to 8; 0: 8.
    pub fn endpoints_max(mut self, count: u32) -> Self {
        self.rare().endpoints_max = count;
        self
    }

    /// The answer will be streamed.
    pub fn stream(self, on: bool) -> Self {
        self.flag(sys::PICKD_REQUEST_STREAM, on)
    }

    /// Images, sounds or the like stand in the prompt, though not as extras.
    pub fn media(self, on: bool) -> Self {
        self.flag(sys::PICKD_REQUEST_MEDIA, on)
    }

    /// Pick, but reserve and remember nothing.
    pub fn dry_run(self, on: bool) -> Self {
        self.flag(sys::PICKD_REQUEST_DRY_RUN, on)
    }

    fn flag(mut self, flag: u32, on: bool) -> Self {
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
        self
    }

    /// The request for one call; it points into `self`.
    pub(crate) fn raw(&self, queue_timeout_us: i64) -> sys::pickd_request {
        let mut raw = sys::pickd_request {
            model: self.model,
            session_id: self.session_id,
            text_count: self.text_count,
            token_ids: self.token_ids,
            token_count: self.token_count,
            prompt_tokens: self.prompt_tokens,
            expected_output_tokens: self.expected_output_tokens,
            priority: self.priority,
            flags: self.flags,
            queue_timeout_us,
            ..EMPTY
        };
        if self.text_count == 1 {
            raw.text = &self.text;
        }
        if let Some(rare) = &self.rare {
            raw.adapter = rare.adapter;
            raw.salt = rare.salt;
            raw.fairness_id = rare.fairness_id;
            raw.request_id = rare.request_id;
            if self.text_count > 1 {
                raw.text = rare.text.as_ptr();
            }
            (raw.extras, raw.extra_count) = (rare.extras.as_ptr(), rare.extras.len());
            (raw.subset, raw.subset_count) = (rare.subset.as_ptr(), rare.subset.len());
            raw.attributes = rare.attributes.as_ptr();
            raw.attribute_count = rare.attributes.len();
            raw.slo_ttft_ms = rare.slo_ttft_ms;
            raw.slo_itl_ms = rare.slo_itl_ms;
            raw.endpoints_max = rare.endpoints_max;
        }
        raw
    }

    /// A request that libpickd-body filled in, whose pointers are good for 'a.
    #[cfg(feature = "body")]
    pub(crate) unsafe fn from_raw(fields: sys::pickd_request) -> Request<'a> {
        let mut made = Request {
            model: fields.model,
            session_id: fields.session_id,
            text_count: fields.text_count,
            token_ids: fields.token_ids,
            token_count: fields.token_count,
            prompt_tokens: fields.prompt_tokens,
            expected_output_tokens: fields.expected_output_tokens,
            flags: fields.flags,
            ..Request::new()
        };
        if fields.text_count > 0 {
            // SAFETY: the caller says that the list is good.
            match unsafe { std::slice::from_raw_parts(fields.text, fields.text_count) } {
                [one] => made.text = *one,
                many => made.rare().text = many.to_vec(),
            }
        }
        let ids = [fields.adapter, fields.salt, fields.fairness_id, fields.request_id];
        if ids.iter().any(|told| told.size > 0) {
            let rare = made.rare();
            [rare.adapter, rare.salt, rare.fairness_id, rare.request_id] = ids;
        }
        let stride = match fields.extra_stride {
            0 => std::mem::size_of::<sys::pickd_extra>(),
            bytes => bytes,
        };
        for at in 0..fields.extra_count {
            // SAFETY: as above; each element begins with an extra.
            let extra = unsafe { fields.extras.byte_add(at * stride).read_unaligned() };
            made.rare().extras.push(extra);
        }
        made
    }
}

impl std::fmt::Debug for Request<'_> {
    /// Sizes only: prompts are not for logs.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Request")
            .field("text_segments", &self.text_count)
            .field("token_ids", &self.token_count)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

pub(crate) const EMPTY: sys::pickd_request = sys::pickd_request {
    struct_size: std::mem::size_of::<sys::pickd_request>(),
    model: NOTHING,
    adapter: NOTHING,
    salt: NOTHING,
    text: std::ptr::null(),
    text_count: 0,
    token_ids: std::ptr::null(),
    token_count: 0,
    prompt_tokens: 0,
    extras: std::ptr::null(),
    extra_count: 0,
    extra_stride: 0,
    session_id: NOTHING,
    fairness_id: NOTHING,
    request_id: NOTHING,
    subset: std::ptr::null(),
    subset_count: 0,
    attributes: std::ptr::null(),
    attribute_count: 0,
    attribute_stride: 0,
    slo_ttft_ms: 0.0,
    slo_itl_ms: 0.0,
    priority: 0,
    expected_output_tokens: 0,
    endpoints_max: 0,
    flags: 0,
    queue_timeout_us: 0,
};

/// A timeout for the library: at least a microsecond, and nothing that it takes for "never".
pub(crate) fn microseconds(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_micros()).unwrap_or(i64::MAX).clamp(1, i64::MAX / 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the library would read there.
    fn read(slice: sys::pickd_slice) -> Vec<u8> {
        if slice.size == 0 {
            return Vec::new();
        }
        // SAFETY: the tests keep alive what their requests borrow.
        unsafe { std::slice::from_raw_parts(slice.data.cast::<u8>(), slice.size) }.to_vec()
    }

    fn list<T: Copy>(at: *const T, count: usize) -> Vec<T> {
        if count == 0 {
            return Vec::new();
        }
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(at, count) }.to_vec()
    }

    fn texts(raw: &sys::pickd_request) -> Vec<Vec<u8>> {
        list(raw.text, raw.text_count).into_iter().map(read).collect()
    }

    #[test]
    fn segments_stand_in_order_however_many_there_are_and_survive_a_move() {
        assert!(texts(&Request::new().raw(0)).is_empty());
        let parts = ["a".to_owned(), String::new(), "bc".to_owned(), "d".to_owned()];
        for count in 1..=parts.len() {
            let mut request = Request::new();
            for part in &parts[..count] {
                request = request.text(part);
            }
            let moved = Box::new(request.clone());
            let expected: Vec<_> = parts[..count].iter().map(|p| p.as_bytes().to_vec()).collect();
            assert_eq!(texts(&request.raw(0)), expected);
            drop(request);
            assert_eq!(texts(&moved.raw(0)), expected);
        }
    }

    #[test]
    fn every_field_reaches_the_library() {
        let (ids, digest, allowed) = ([1, 2, 3], [7u8; 16], ["engine-1", "engine-2"]);
        let request = Request::new()
            .model("m")
            .adapter("a")
            .salt(b"\0salt")
            .token_ids(&ids)
            .prompt_tokens(9)
            .extra(2, &digest)
            .session_id("s")
            .fairness_id("f")
            .request_id("r")
            .subset(&allowed)
            .attribute("k", "")
            .attribute("l", "w")
            .slo_ttft(Duration::from_millis(1500))
            .slo_itl(Duration::from_micros(500))
            .priority(-3)
            .expected_output_tokens(11)
            .endpoints_max(2)
            .stream(true)
            .dry_run(true)
            .dry_run(false);
        let raw = request.raw(77);
        assert_eq!(raw.struct_size, std::mem::size_of::<sys::pickd_request>());
        assert_eq!((read(raw.model), read(raw.adapter)), (b"m".to_vec(), b"a".to_vec()));
        assert_eq!(read(raw.salt), b"\0salt");
        assert_eq!(list(raw.token_ids, raw.token_count), ids);
        let extras = list(raw.extras, raw.extra_count);
        assert_eq!((extras[0].offset, read(extras[0].digest)), (2, digest.to_vec()));
        assert_eq!(read(raw.session_id), b"s");
        assert_eq!((read(raw.fairness_id), read(raw.request_id)), (b"f".to_vec(), b"r".to_vec()));
        let subset: Vec<_> = list(raw.subset, raw.subset_count).into_iter().map(read).collect();
        assert_eq!(subset, [b"engine-1".to_vec(), b"engine-2".to_vec()]);
        let attributes = list(raw.attributes, raw.attribute_count);
        assert_eq!((read(attributes[0].key), read(attributes[0].value)), (b"k".to_vec(), vec![]));
        assert_eq!(read(attributes[1].value), b"w");
        assert_eq!((raw.slo_ttft_ms, raw.slo_itl_ms), (1500.0, 0.5));
        assert_eq!((raw.priority, raw.expected_output_tokens), (-3, 11));
        assert_eq!((raw.endpoints_max, raw.prompt_tokens, raw.queue_timeout_us), (2, 9, 77));
        assert_eq!(raw.flags, sys::PICKD_REQUEST_STREAM | sys::PICKD_REQUEST_SUBSET);
    }

    #[test]
    fn an_empty_subset_is_told_and_means_nobody() {
        let nobody: [&str; 0] = [];
        let raw = Request::new().subset(&nobody).raw(0);
        assert_eq!((raw.subset_count, raw.flags), (0, sys::PICKD_REQUEST_SUBSET));
    }

    #[test]
    fn timeouts_are_never_none_and_never_for_ever() {
        assert_eq!(microseconds(Duration::ZERO), 1);
        assert_eq!(microseconds(Duration::from_millis(2)), 2000);
        assert!(microseconds(Duration::MAX) < sys::PICKD_NO_DEADLINE / 8);
    }
}
