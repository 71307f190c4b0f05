"""What callers fill in: requests, reports, endpoints. Plain data; memory.py turns it into C memory."""
from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

Text = Union[str, bytes]
"""A string, encoded as UTF-8, or its bytes, which need not be that."""


class Ticket(NamedTuple):
    """Names one picked request. It stays good across reconnects and daemon restarts."""

    client: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.client:x}/{self.sequence}"


class Role(enum.IntEnum):
    """What an endpoint does of a request."""

    BOTH = 0
    DECODE = 1
    PREFILL = 2
    ENCODE = 3


class Extra(NamedTuple):
    """Content that stands in the prompt but is not text: an image, audio, video.

    `digest` names it: 16 to 64 bytes of any good hash. `offset` is where it stands: bytes of the text, or number of
    token ids before it. Equal digests at equal places share prefix blocks, different ones never do.
    """

    offset: int
    digest: bytes


@dataclass
class Request:
    """What is to be served. Only what is known need be filled in; Request() picks by load among all endpoints."""

    model: Text = ""
    """At most 255 bytes; empty: any."""
    text: Union[Text, Sequence[Text]] = ()
    """The prompt as text, whole or in segments, which are joined without a separator. It is hashed here and does not
    leave the process."""
    token_ids: Union[Sequence[int], Any] = ()
    """The prompt as token ids in place of text, not both. What has the buffer protocol with 32-bit items
    (array("I"), a numpy array of uint32) is not copied."""
    adapter: Text = ""
    """LoRA adapter, at most 255 bytes; its prefixes are its own."""
    salt: Text = ""
    """Requests of different salts share no prefix (tenants)."""
    prompt_tokens: int = 0
    """0: the number of token ids, or a quarter of the bytes of text."""
    extras: Sequence[Extra] = ()
    """In order of offset."""
    session_id: Text = ""
    """At most 255 bytes, as the next two."""
    fairness_id: Text = ""
    request_id: Text = ""
    """Shown in explanations."""
    subset: Optional[Sequence[Text]] = None
    """Names or addresses that the pick may go to, at most 512. None: all. An empty one means nobody, and gives
    NoEndpointError."""
    attributes: Union[Mapping[str, str], Sequence[Tuple[Text, Text]]] = ()
    """Headers and labels for plugins that ask for them; at most 32."""
    slo_ttft_ms: float = 0.0
    """Wanted time to the first token; 0: none."""
    slo_itl_ms: float = 0.0
    """Wanted time between tokens; 0: none."""
    priority: int = 0
    """-32768 to 32767; 0 is the ordinary one, negative may be shed."""
    expected_output_tokens: int = 0
    """0: unknown."""
    endpoints_max: int = 0
    """How many endpoints the pick lists, 1 to 8; 0: 8."""
    stream: bool = False
    """The answer will be streamed."""
    media: bool = False
    """Images, sounds or the like stand in the prompt, though not as extras."""
    dry_run: bool = False
    """Pick, but reserve and remember nothing."""


class ReportKind(enum.IntEnum):
    """What became of a request. DONE, FAILED and CANCELLED end it and are applied once."""

    FIRST_TOKEN = 1
    """The first token came: its prefill is over."""
    PROGRESS = 2
    """The stream lives; output_tokens so far."""
    DONE = 3
    """The request ended well; usage as far as known."""
    FAILED = 4
    """The endpoint failed, which makes it suspect; the request ended."""
    FALLBACK = 5
    """It failed too, and `endpoint` serves now: the reservation moves."""
    CANCELLED = 6
    """The caller went away: says nothing of the endpoint; the request ended."""


@dataclass
class Report:
    """Tells the daemon what became of the request of a ticket. A count that is None is unknown."""

    ticket: Ticket
    kind: ReportKind
    prompt_tokens: Optional[int] = None
    """From the engine's usage."""
    cached_tokens: Optional[int] = None
    """usage.prompt_tokens_details.cached_tokens."""
    output_tokens: Optional[int] = None
    """From the engine's usage; of PROGRESS, so far."""
    endpoint: Text = ""
    """Of FALLBACK: name or address out of the pick."""


@dataclass
class EndpointSpec:
    """What the daemon is told of an endpoint: one engine, or one data-parallel rank of it."""

    name: str
    """Unique, 1 to 127 bytes."""
    address: str
    """"host:port" or a URL, 1 to 127 bytes; handed out as it is."""
    pool: str = ""
    """Empty: "default"."""
    role: Role = Role.BOTH
    models: Sequence[str] = ()
    """Empty: serves any model; at most 64."""
    labels: Optional[Mapping[str, str]] = None
    """At most 64."""
    capacity_tokens: int = 0
    """KV cache of the engine in tokens; 0: the configured capacity."""
