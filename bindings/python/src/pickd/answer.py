"""Pick: the answer as callers see it, read out of what native/bridge.c packs."""
from __future__ import annotations

import enum
import math
import struct
from typing import NamedTuple, Optional, Tuple

from .request import Role, Ticket

# pickdpy_head and pickdpy_endpoint of native/bridge.h.
_HEAD = struct.Struct("=IiQQQQddIIIHBB")
_ENDPOINT = struct.Struct("=dIHHH6x")
# Of a head: what a queue needs before it makes a Pick.
PEEK = struct.Struct("=IiQ")

_CUT, _DEGRADED = 1, 2


class Reason(enum.IntEnum):
    """Why the first endpoint of a pick won."""

    NONE = 0
    SCORE = 1
    """Highest score, alone."""
    TIE = 2
    """Drawn at random among equals."""
    PREFIX = 3
    """Highest score, and the longest prefix match."""
    SESSION = 4
    """The endpoint of the session."""
    ONLY = 5
    """The only candidate."""
    POLICY = 6
    """A policy without scores, such as round-robin."""
    FALLBACK = 7
    """Nobody is healthy: the least bad."""
    DEGRADED = 8
    """Picked by the library itself: the daemon is away."""
    UNPREDICTED = 9
    """By load and prefix: no model of latencies is ready for a profile that goes by them."""


_REASONS = {int(reason): reason for reason in Reason}
_ROLES = {int(role): role for role in Role}


class Endpoint(NamedTuple):
    """An endpoint of a pick."""

    address: str
    """As configured: "host:port" or a URL."""
    name: str
    role: Role
    match_tokens: int
    """Prompt tokens thought cached there; 0 of an encode endpoint."""
    score: float
    """What the scheduling profile gave it; 0 of a prefill or encode endpoint."""


class Pick:
    """The answer to a request. What is asked for is unpacked then: most callers look at the winner only."""

    __slots__ = ("_packed", "_head", "_endpoints")

    def __init__(self, packed: bytes) -> None:
        self._packed = packed
        self._head = _HEAD.unpack_from(packed)
        self._endpoints: Optional[Tuple[Endpoint, ...]] = None

    def _unpack(self) -> Tuple[Endpoint, ...]:
        """All endpoints: after those that may serve, who computes the prompt and who encodes where there are such."""
        if self._endpoints is None:
            packed, all_count = self._packed, sum(self._head[11:])
            text, found = _HEAD.size + all_count * _ENDPOINT.size, []
            for at in range(all_count):
                score, match_tokens, role, address_size, name_size = _ENDPOINT.unpack_from(
                    packed, _HEAD.size + at * _ENDPOINT.size)
                name = text + address_size
                address_text = packed[text:name].decode("utf-8", "surrogateescape")
                text = name + name_size
                found.append(Endpoint(address_text, packed[name:text].decode("utf-8", "surrogateescape"), _ROLES[role],
                                      match_tokens, score))
            self._endpoints = tuple(found)
        return self._endpoints

    @property
    def ticket(self) -> Ticket:
        """Names the request in reports."""
        return Ticket(self._head[3], self._head[4])

    @property
    def address(self) -> str:
        """Of the winner, as configured."""
        return self._unpack()[0].address

    @property
    def name(self) -> str:
        """Of the winner."""
        return self._unpack()[0].name

    @property
    def endpoints(self) -> Tuple[Endpoint, ...]:
        """The winner, then fallbacks in order; at least one."""
        return self._unpack()[:self._head[11]]

    @property
    def prefill(self) -> Optional[Endpoint]:
        """Who computes the prompt first, of a request that is split; else None."""
        return self._unpack()[self._head[11]] if self._head[12] else None

    @property
    def encode(self) -> Optional[Endpoint]:
        """Who turns the request's extras into embeddings before that, where it is split off; else None."""
        return self._unpack()[-1] if self._head[13] else None

    @property
    def reason(self) -> Reason:
        """Why the winner won."""
        return _REASONS.get(self._head[8], Reason.NONE)

    @property
    def degraded(self) -> bool:
        """Picked by the library itself: the daemon is away."""
        return bool(self._head[9] & _DEGRADED)

    @property
    def cut(self) -> bool:
        """The prompt was longer than the key limit."""
        return bool(self._head[9] & _CUT)

    @property
    def prompt_tokens(self) -> int:
        """As used for the pick."""
        return int(self._head[10])

    @property
    def ttft_ms(self) -> Optional[float]:
        """Predicted time to the first token; None: unknown."""
        return None if math.isnan(self._head[6]) else float(self._head[6])

    @property
    def itl_ms(self) -> Optional[float]:
        """Predicted time between tokens; None: unknown."""
        return None if math.isnan(self._head[7]) else float(self._head[7])

    @property
    def hash_ns(self) -> int:
        """What hashing the prompt took, in nanoseconds."""
        return int(self._head[5])

    def __repr__(self) -> str:
        return (f"Pick(ticket={self.ticket}, endpoints={self.endpoints!r}, reason={self.reason.name}, "
                f"degraded={self.degraded}, prompt_tokens={self.prompt_tokens})")
