"""Bodies and answers of LLM APIs, by libpickd-body: requests out of what clients send, reports out of what engines
answer. What it reads, and how, is said in pickd/body.h and docs/bodies.md.

    reader = pickd.body.Reader()
    info = reader.read("/v1/chat/completions", body, headers)
    pick = await client.pick(reader.request())
"""
from __future__ import annotations

import enum
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from ._native import ffi, lib
from .errors import failure
from .memory import attributes_of, c_string, encoded
from .request import Extra, Report, ReportKind, Request, Text, Ticket

Headers = Union[Mapping[str, str], Sequence[Tuple[Text, Text]]]
Data = Union[bytes, bytearray, memoryview]

LONGEST = 2 ** (8 * ffi.sizeof("size_t")) - 1
"""Stands for an index: the longest prompt of the body."""


class Api(enum.IntEnum):
    """The API of a body, by its path."""

    UNKNOWN = 0
    COMPLETIONS = 1
    CHAT = 2
    RESPONSES = 3
    EMBEDDINGS = 4
    MESSAGES = 5
    SGLANG = 6
    VLLM = 7


class Info(NamedTuple):
    """What was read of a body."""

    api: Api
    status: int
    """0, or the negative errno value that says why there is no prompt; the request is picked by load then."""
    problem: str
    """The same in words; empty when there is none."""
    stream: bool
    """The answer is to be streamed."""
    usage: bool
    """The stream is to tell usage in its last event."""
    open_end: bool
    """The answer goes on with the last message's text."""
    n: int
    """Answers asked for of each prompt."""
    max_tokens: Optional[int]
    """Of one answer; None: not told."""
    prompt_count: int
    """Prompts that can be asked for by index."""
    media_count: int
    """Images, sounds, videos and files."""
    model: str
    adapter: str
    session_id: str
    request_id: str
    fairness_id: str


class Counters:
    """Counts for all readers that were made with it: bodies, and those without a prefix by reason. Any thread."""

    def __init__(self) -> None:
        self.raw = ffi.gc(_made(lib.pickd_body_counters_new()), lib.pickd_body_counters_free)

    def values(self) -> Dict[str, int]:
        """The counters by their names for a metrics page ("bodies_malformed_total")."""
        found: Dict[str, int] = {}
        for at in range(1000):
            name = lib.pickd_body_counter_name(at, ffi.NULL)
            if name == ffi.NULL:
                break
            found[ffi.string(name).decode()] = lib.pickd_body_counter_value(self.raw, at)
        return found


class Reader:
    """Reads bodies, one at a time, each into a request. For one thread at a time; make one for each request that a
    gateway handles at once, or read a body and ask for its request without an await in between."""

    def __init__(self, *, body_bytes_max: int = 0, media_tokens: int = 0, session_header: Optional[str] = None,
                 counters: Optional[Counters] = None) -> None:
        """body_bytes_max: longer bodies are not read; 0: 32 MiB. media_tokens: prompt tokens that an image, a sound or
        a video is taken for; 0: 576. session_header: the header that names the session; None: x-session-id, then
        x-claude-code-session-id, then x-session-affinity."""
        options = ffi.new("pickd_body_options *")
        options.struct_size = ffi.sizeof("pickd_body_options")
        options.body_bytes_max, options.media_tokens = body_bytes_max, media_tokens
        header = ffi.new("char[]", c_string(session_header)) if session_header else ffi.NULL
        options.session_header = header
        if counters is not None:
            options.counters = counters.raw
        self._counters = counters  # outlives the handle
        made = ffi.new("pickd_body **")
        _check("body", lib.pickd_body_new(options, made))
        self.raw = ffi.gc(made[0], lib.pickd_body_free)

    def read(self, path: Text, body: Data, headers: Headers = (), *, tenant: Text = "") -> Info:
        """Reads a whole body. It raises nothing for what a client may send: see Info.status."""
        self.begin(path, headers, tenant=tenant, body_bytes=len(body))
        self.add(body)
        return self.end()

    def begin(self, path: Text, headers: Headers = (), *, tenant: Text = "", body_bytes: int = 0) -> None:
        """Begins a body that comes in pieces; what was read before is gone.

        tenant: told by the gateway, not by the client: requests of different tenants share no prefix.
        body_bytes: its content-length, for memory at once; 0: unknown.
        """
        head = ffi.new("pickd_body_head *")
        head.struct_size = ffi.sizeof("pickd_body_head")
        keep = [_slice(head.path, path), _slice(head.tenant, tenant)]
        head.headers, kept = attributes_of(headers)
        head.header_count, head.body_bytes = len(headers), max(body_bytes, 0)
        _check("body", lib.pickd_body_begin(self.raw, head))
        del keep, kept

    def add(self, piece: Data) -> bool:
        """Adds the next piece, of any size. False: the body is too long, and the rest need not be added."""
        held = ffi.from_buffer(piece)
        code = lib.pickd_body_add(self.raw, held, len(held))
        if code == -_E2BIG:
            return False
        _check("body", code)
        return True

    def end(self) -> Info:
        """Says that the body is complete and reads it."""
        lib.pickd_body_end(self.raw)
        return self.info()

    def info(self) -> Info:
        """What was read."""
        raw = ffi.new("pickd_body_info *")
        raw.struct_size = ffi.sizeof("pickd_body_info")
        _check("body", lib.pickd_body_read_info(self.raw, raw))
        problem = ffi.string(lib.pickd_body_strerror(raw.status)).decode() if raw.status else ""
        return Info(
            Api(int(raw.api)), raw.status, problem, bool(raw.flags & lib.PICKD_BODY_STREAM),
            bool(raw.flags & lib.PICKD_BODY_USAGE), bool(raw.flags & lib.PICKD_BODY_OPEN_END), raw.n,
            None if raw.max_tokens == lib.PICKD_UNKNOWN else raw.max_tokens, raw.prompt_count, raw.media_count,
            *(_bytes(text).decode("utf-8", "replace")
              for text in (raw.model, raw.adapter, raw.session_id, raw.request_id, raw.fairness_id)))

    def request(self, index: int = LONGEST) -> Request:
        """The request for a prompt of the body, with all that the body tells. It is the caller's, and lives on.

        A body with several prompts is one request to one engine: the index chooses the prompt whose blocks are
        matched; LONGEST takes the longest, and the tokens of all of them. Where nothing could be read there is no
        prompt: the request is picked by load.
        """
        raw = ffi.new("pickd_request *")
        raw.struct_size = ffi.sizeof("pickd_request")
        _check("body", lib.pickd_body_request(self.raw, index, raw))
        text = bytearray(lib.pickdpy_join_size(raw.text, raw.text_count))
        lib.pickdpy_join(raw.text, raw.text_count, ffi.from_buffer(text))
        ids: Any = ffi.buffer(raw.token_ids, 4 * raw.token_count)[:] if raw.token_count else b""
        return Request(
            model=_bytes(raw.model), adapter=_bytes(raw.adapter), salt=_bytes(raw.salt), text=bytes(text),
            token_ids=memoryview(ids).cast("I") if ids else (), prompt_tokens=raw.prompt_tokens,
            extras=_extras(raw), session_id=_bytes(raw.session_id), fairness_id=_bytes(raw.fairness_id),
            request_id=_bytes(raw.request_id), expected_output_tokens=raw.expected_output_tokens,
            stream=bool(raw.flags & lib.PICKD_REQUEST_STREAM), media=bool(raw.flags & lib.PICKD_REQUEST_MEDIA))

    def append(self, answer: Answer) -> bool:
        """Appends the answer to the prompt, as the message that the caller will send with the next turn; request()
        then gives a prompt of which the next turn's is a continuation. The answer must have been begun with keep_text
        and be read to its end. False: the body has no next turn, or the answer no text.

        To tell pickd that the engine holds the answer, too, pick with that request and a subset of the one endpoint
        that served, and report CANCELLED on that ticket at once.
        """
        code = lib.pickd_body_append(self.raw, answer.raw)
        if code == -_ENODATA:
            return False
        _check("body", code)
        return True


class News(enum.IntFlag):
    """What came with a piece of an answer."""

    FIRST_TOKEN = 1
    """The first token came with it; once an answer, streams only."""
    TOKENS = 2
    USAGE = 4
    ENDED = 8
    """The stream said that it is complete; once an answer."""


_NEWS = [News(bits) for bits in range(16)]


class Answer:
    """Reads answers, one at a time, into reports. For one thread at a time."""

    def __init__(self, *, answer_bytes_max: int = 0, text_bytes_max: int = 0,
                 counters: Optional[Counters] = None) -> None:
        """answer_bytes_max: of an answer that is not streamed, and of one event; 0: 8 MiB. text_bytes_max: of text that
        is kept for Reader.append(); 0: 1 MiB."""
        options = ffi.new("pickd_answer_options *")
        options.struct_size = ffi.sizeof("pickd_answer_options")
        options.answer_bytes_max, options.text_bytes_max = answer_bytes_max, text_bytes_max
        if counters is not None:
            options.counters = counters.raw
        self._counters = counters
        made = ffi.new("pickd_answer **")
        _check("answer", lib.pickd_answer_new(options, made))
        self.raw = ffi.gc(made[0], lib.pickd_answer_free)

    def begin(self, api: Api, status: int = 200, headers: Headers = (), *, keep_text: bool = False) -> None:
        """Begins an answer, when its head has come: the API of the request, the status and headers of the answer."""
        head = ffi.new("pickd_answer_head *")
        head.struct_size = ffi.sizeof("pickd_answer_head")
        head.api, head.status = api, status
        head.headers, kept = attributes_of(headers)
        head.header_count = len(headers)
        head.flags = lib.PICKD_ANSWER_KEEP_TEXT if keep_text else 0
        _check("answer", lib.pickd_answer_begin(self.raw, head))
        del kept

    def add(self, piece: Data) -> News:
        """Adds the next piece, cut anywhere; tells what came with it."""
        held = ffi.from_buffer(piece)
        code: int = lib.pickd_answer_add(self.raw, held, len(held))
        _check("answer", code)
        return _NEWS[code & 15]

    def end(self) -> str:
        """Says that the answer is complete, whether it ended well or not. Returns what is wrong with it, in words;
        empty when nothing is. report() can be asked either way."""
        code = lib.pickd_answer_end(self.raw)
        return ffi.string(lib.pickd_body_strerror(code)).decode() if code else ""

    def report(self, ticket: Ticket) -> Report:
        """What the answer tells so far: FIRST_TOKEN and PROGRESS while it goes on; after end() DONE, FAILED or
        CANCELLED, with usage. A gateway whose caller went away knows better, and reports CANCELLED itself."""
        raw = ffi.new("pickd_report_info *")
        raw.struct_size = ffi.sizeof("pickd_report_info")
        _check("answer", lib.pickd_answer_report(self.raw, raw))
        return Report(ticket, ReportKind(int(raw.kind)), _count(raw.prompt_tokens), _count(raw.cached_tokens),
                      _count(raw.output_tokens))


_E2BIG, _ENODATA = 7, 61


def _made(raw: Any) -> Any:
    if raw == ffi.NULL:
        raise MemoryError
    return raw


def _check(op: str, code: int) -> None:
    if code < 0:
        raise failure(op, code)


def _slice(to: Any, text: Text) -> Any:
    held = ffi.from_buffer(encoded(text))
    to.data, to.size = held, len(held)
    return held


def _bytes(text: Any) -> bytes:
    return bytes(ffi.buffer(text.data, text.size)) if text.size else b""


def _count(value: int) -> Optional[int]:
    return None if value == lib.PICKD_UNKNOWN else value


def _extras(raw: Any) -> List[Extra]:
    found: List[Extra] = []
    stride = raw.extra_stride or ffi.sizeof("pickd_extra")
    base = ffi.cast("const char *", raw.extras)
    for at in range(raw.extra_count):
        extra = ffi.cast("const pickd_extra *", base + at * stride)
        found.append(Extra(extra.offset, _bytes(extra.digest)))
    return found
