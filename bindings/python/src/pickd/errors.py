"""Errors: libpickd's codes as exceptions. What they mean is said in pickd.h, not here."""
from __future__ import annotations

import asyncio
import errno
from typing import Dict, Optional, Type

from ._native import ffi, lib


class Error(Exception):
    """A failure that libpickd told of; its subclasses are the kinds there are.

    `op` is what was being done ("pick", "open", "report", ...), `errno` the code as in pickd.h, positive, and `detail`
    the library's words where it had any: of a client that could not be opened, and of arguments; may be empty.
    """

    errno: int = 0

    def __init__(self, op: str, code: Optional[int] = None, detail: str = "") -> None:
        self.op = op
        if code is not None:
            self.errno = code
        self.detail = detail
        words = ffi.string(lib.pickd_strerror(-self.errno)).decode()
        super().__init__(f"{op}: {words}: {detail}" if detail else f"{op}: {words}")

    def __reduce__(self) -> tuple[Type[Error], tuple[str, int, str]]:
        return type(self), (self.op, self.errno, self.detail)


class NoEndpointError(Error):
    """No ready endpoint, or none that the subset allows."""

    errno = errno.EHOSTUNREACH


class ShedError(Error):
    """The filters left nobody, or the priority is negative and the pool is saturated."""

    errno = errno.EBUSY


class NotFoundError(Error):
    """No endpoint serves this model, or none has this name."""

    errno = errno.ENOENT


class InvalidError(Error, ValueError):
    """An argument is malformed."""

    errno = errno.EINVAL


class TooBigError(Error, ValueError):
    """A string or list is over its limit."""

    errno = errno.E2BIG


class ExistsError(Error):
    """An endpoint of this name exists already."""

    errno = errno.EEXIST


class AccessError(Error):
    """The mode of the daemon's socket does not let this user connect."""

    errno = errno.EACCES


class NotPermittedError(Error):
    """The daemon's configuration does not let this user do that."""

    errno = errno.EPERM


class StaleError(Error):
    """The ticket is unknown, or its request has ended already."""

    errno = errno.ESTALE


class TimedOutError(Error, asyncio.TimeoutError):
    """The deadline passed; nothing stays reserved. Of a pick: and no endpoint is known to pick without the daemon."""

    errno = errno.ETIMEDOUT


class LimitedError(Error):
    """This user is over a limit of the daemon: wait a little."""

    errno = errno.EAGAIN


class NotConnectedError(Error):
    """The daemon is away; of a pick: nor is an endpoint known to pick without it."""

    errno = errno.ENOTCONN


class ProtocolError(Error):
    """The daemon answered what the library cannot read."""

    errno = errno.EPROTO


class VersionError(Error):
    """The daemon speaks another layout: install the same release of both."""

    errno = errno.EPROTONOSUPPORT


class TooManyError(Error):
    """The daemon has all the clients or channels that it may have, or this process all its descriptors."""

    errno = errno.EMFILE


class OutOfMemoryError(Error, MemoryError):
    """Out of memory."""

    errno = errno.ENOMEM


class ForkedError(Error):
    """A client was used in a child of the process that opened it."""

    errno = errno.EOWNERDEAD


class ClosedError(Error):
    """What was asked of a closed client, or was under way when it closed."""

    errno = errno.ESHUTDOWN

    def __init__(self, op: str, code: Optional[int] = None, detail: str = "") -> None:
        super().__init__(op, code, detail)
        self.args = (f"{op}: the client is closed",)


_KINDS: Dict[int, Type[Error]] = {
    kind.errno: kind for kind in (
        NoEndpointError, ShedError, NotFoundError, InvalidError, TooBigError, ExistsError, AccessError,
        NotPermittedError, StaleError, TimedOutError, LimitedError, NotConnectedError, ProtocolError, VersionError,
        TooManyError, OutOfMemoryError, ForkedError, ClosedError)}
_KINDS[errno.ENFILE] = TooManyError  # the machine's descriptors, in place of this process's

_STATUS: Dict[Type[Error], int] = {
    ShedError: 429, LimitedError: 429, NotFoundError: 404, InvalidError: 400, TooBigError: 400, TimedOutError: 504}


def failure(op: str, code: int, detail: str = "") -> Error:
    """The exception for a negative errno value of the library."""
    kind = _KINDS.get(-code)
    return kind(op, None, detail) if kind is not None else Error(op, -code, detail)


def http_status(error: BaseException) -> int:
    """What a gateway answers to its client when a pick fails with `error`.

    503, 429, 404 or 400 as pickd.h has it, 504 for a deadline, 499 for a cancelled task, 503 for the rest.
    """
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return status
    if isinstance(error, (asyncio.TimeoutError, TimeoutError)):
        return 504
    return 499 if isinstance(error, asyncio.CancelledError) else 503
