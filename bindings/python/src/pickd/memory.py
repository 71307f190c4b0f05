"""Requests, reports and endpoints in C memory. The only file that knows what libpickd's structs are called."""
from __future__ import annotations

from array import array
from typing import Any, List, Mapping, Sequence, Tuple, Union

from ._native import ffi, lib
from .errors import InvalidError
from .request import EndpointSpec, Report, Request, Text

_UINT32_MAX = 0xFFFFFFFF
_REQUEST_SIZE = ffi.sizeof("pickd_request")
_REPORT_SIZE = ffi.sizeof("pickd_report_info")
_NO_REQUEST = ffi.new("pickd_request *", {"struct_size": _REQUEST_SIZE})
_from_buffer = ffi.from_buffer


def encoded(text: Text) -> bytes:
    """The bytes of a text. What is no character (a surrogate alone) is kept, as JSON may have it."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def c_string(text: Text) -> bytes:
    """The bytes of a text that C takes as a string, which ends at its first NUL."""
    made = encoded(text)
    if b"\0" in made:
        raise InvalidError("endpoint", None, f"{text!r} holds a NUL")
    return made


def unsigned(count: int) -> int:
    """A count as the library takes it. Raises OverflowError, which callers are told as InvalidError."""
    if not 0 <= count < _UINT32_MAX:
        raise OverflowError(f"{count} is no count: 0 to {_UINT32_MAX - 1}")
    return count


class RequestMemory:
    """C memory for one request at a time. What it points to lives until it is filled again or released."""

    def __init__(self) -> None:
        self.raw = ffi.new("pickd_request *")
        self._keep: List[Any] = []

    def _point(self, to: Any, text: Text) -> None:
        held = _from_buffer(encoded(text))
        self._keep.append(held)
        to.data, to.size = held, len(held)

    def _slices(self, texts: Sequence[Text]) -> Any:
        slices = ffi.new("pickd_slice[]", len(texts))
        for at, text in enumerate(texts):
            self._point(slices[at], text)
        self._keep.append(slices)
        return slices

    def release(self) -> None:
        """Lets go of what the request points to."""
        self._keep.clear()

    def fill(self, request: Request) -> Any:
        """The request as a pickd_request. Raises InvalidError for what C has no room for."""
        try:
            return self._fill(request)
        except (OverflowError, TypeError) as error:
            self._keep.clear()
            raise InvalidError("pick", None, str(error)) from error

    def _fill(self, request: Request) -> Any:
        raw, keep = self.raw, self._keep
        keep.clear()
        raw[0] = _NO_REQUEST[0]
        if request.model:
            self._point(raw.model, request.model)
        text = request.text
        if isinstance(text, (str, bytes)):
            if text:
                # One segment: a slice of its own.
                held = _from_buffer(encoded(text))
                slices = ffi.new("pickd_slice *")
                slices.data, slices.size = held, len(held)
                keep += (held, slices)
                raw.text, raw.text_count = slices, 1
        elif text:
            raw.text, raw.text_count = self._slices(text), len(text)
        self._fill_ids(raw, request.token_ids)
        if request.adapter:
            self._point(raw.adapter, request.adapter)
        if request.salt:
            self._point(raw.salt, request.salt)
        if request.session_id:
            self._point(raw.session_id, request.session_id)
        if request.fairness_id:
            self._point(raw.fairness_id, request.fairness_id)
        if request.request_id:
            self._point(raw.request_id, request.request_id)
        if request.extras:
            self._fill_extras(raw, request)
        if request.subset is not None:
            raw.flags = lib.PICKD_REQUEST_SUBSET
            if request.subset:
                raw.subset, raw.subset_count = self._slices(request.subset), len(request.subset)
        if request.attributes:
            raw.attributes, raw.attribute_count = self._attributes(request.attributes)
        if request.stream:
            raw.flags |= lib.PICKD_REQUEST_STREAM
        if request.media:
            raw.flags |= lib.PICKD_REQUEST_MEDIA
        if request.dry_run:
            raw.flags |= lib.PICKD_REQUEST_DRY_RUN
        if request.prompt_tokens:
            raw.prompt_tokens = unsigned(request.prompt_tokens)
        if request.slo_ttft_ms:
            raw.slo_ttft_ms = request.slo_ttft_ms
        if request.slo_itl_ms:
            raw.slo_itl_ms = request.slo_itl_ms
        if request.priority:
            raw.priority = request.priority
        if request.expected_output_tokens:
            raw.expected_output_tokens = unsigned(request.expected_output_tokens)
        if request.endpoints_max:
            raw.endpoints_max = unsigned(request.endpoints_max)
        return raw

    def _fill_ids(self, raw: Any, ids: Any) -> None:
        if len(ids) == 0:
            return
        try:
            view = memoryview(ids)
        except TypeError:
            view = memoryview(array("I", ids))
        if view.itemsize != 4 or view.format not in ("I", "i", "L", "l", "=I", "<I") or not view.c_contiguous:
            raise TypeError("token_ids: a sequence of int, or a contiguous buffer of 32-bit integers")
        held = _from_buffer("uint32_t[]", view)
        self._keep.append(held)
        raw.token_ids, raw.token_count = held, len(held)

    def _fill_extras(self, raw: Any, request: Request) -> None:
        extras = ffi.new("pickd_extra[]", len(request.extras))
        for at, (offset, digest) in enumerate(request.extras):
            extras[at].offset = offset
            self._point(extras[at].digest, digest)
        self._keep.append(extras)
        raw.extras, raw.extra_count = extras, len(request.extras)

    def _attributes(self, attributes: Union[Mapping[str, str], Sequence[Tuple[Text, Text]]]) -> Tuple[Any, int]:
        made, keep = attributes_of(attributes)
        self._keep += keep
        return made, len(attributes)


def attributes_of(attributes: Union[Mapping[str, str], Sequence[Tuple[Text, Text]]]) -> Tuple[Any, List[Any]]:
    """An array of pickd_attribute, and what must be kept as long as it."""
    pairs = list(attributes.items()) if isinstance(attributes, Mapping) else list(attributes)
    made = ffi.new("pickd_attribute[]", len(pairs))
    keep: List[Any] = [made]
    for at, pair in enumerate(pairs):
        for to, text in zip((made[at].key, made[at].value), pair):
            held = _from_buffer(encoded(text))
            to.data, to.size = held, len(held)
            keep.append(held)
    return made, keep


def report_of(report: Report) -> Tuple[Any, Any]:
    """The report as a pickd_report_info, and what must be kept as long as it."""
    unknown = lib.PICKD_UNKNOWN
    raw = ffi.new("pickd_report_info *")
    raw.struct_size = _REPORT_SIZE
    raw.ticket.client, raw.ticket.sequence = report.ticket
    raw.kind = report.kind
    raw.prompt_tokens = unknown if report.prompt_tokens is None else unsigned(report.prompt_tokens)
    raw.cached_tokens = unknown if report.cached_tokens is None else unsigned(report.cached_tokens)
    raw.output_tokens = unknown if report.output_tokens is None else unsigned(report.output_tokens)
    keep = None
    if report.endpoint:
        keep = _from_buffer(encoded(report.endpoint))
        raw.endpoint.data, raw.endpoint.size = keep, len(keep)
    return raw, keep


def endpoint_of(spec: EndpointSpec) -> Tuple[Any, List[Any]]:
    """The endpoint as a pickd_endpoint, and what must be kept as long as it."""
    keep: List[Any] = []

    def string(text: str) -> Any:
        keep.append(ffi.new("char[]", c_string(text)))
        return keep[-1]

    raw = ffi.new("pickd_endpoint *")
    raw.struct_size = ffi.sizeof("pickd_endpoint")
    raw.name, raw.address = string(spec.name), string(spec.address)
    if spec.pool:
        raw.pool = string(spec.pool)
    raw.role = spec.role
    if spec.models:
        keep.append(ffi.new("const char *[]", [string(model) for model in spec.models]))
        raw.models, raw.model_count = keep[-1], len(spec.models)
    if spec.labels:
        keep.append(ffi.new("pickd_label[]", [(string(key), string(value)) for key, value in spec.labels.items()]))
        raw.labels, raw.label_count = keep[-1], len(spec.labels)
    raw.capacity_tokens = spec.capacity_tokens
    raw.waiting = raw.running = raw.kv_use_ppm = lib.PICKD_UNKNOWN
    return raw, keep
