"""An open pickd_client and the calls of it that wait: what Client and AsyncClient share."""
from __future__ import annotations

import errno
import math
import threading
import time
import weakref
from typing import Any, Callable, NamedTuple, Optional

from ._native import ffi, lib
from .errors import ClosedError, InvalidError, TooBigError, failure
from .memory import c_string, endpoint_of, report_of
from .request import EndpointSpec, Report


# How long a report waits for room, which a daemon that goes on makes within a millisecond; and between looks.
_ROOM_PATIENCE_S, _ROOM_PAUSE_S = 1.0, 0.0002
_WORDS_BYTES = 256  # of the words of a failure


class Info(NamedTuple):
    """What the daemon granted."""

    block_tokens: int
    """Tokens in a prefix block."""
    keys_max: int
    """Longest prompt in blocks."""
    version: str
    """Of the daemon."""


def finite(op: str, timeout: Optional[float]) -> Optional[float]:
    """A timeout, where it is one; None: for ever."""
    if timeout is None or timeout == math.inf:
        return None
    if math.isnan(timeout):
        raise InvalidError(op, None, "a timeout is a number of seconds, not nan")
    return timeout


def microseconds(op: str, timeout: Optional[float]) -> int:
    """A timeout in seconds as libpickd takes it."""
    timeout = finite(op, timeout)
    if timeout is None:
        return int(lib.PICKD_NO_DEADLINE)
    return min(max(int(timeout * 1e6), 0), 2**59)


class Handle:
    """A pickd_client. Any thread; close() waits for calls that are under way."""

    def __init__(self, socket: Optional[str], name: Optional[str], keys_max: int, channels_max: int,
                 connect_timeout: float, spin_us: int, busy_poll: bool) -> None:
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._calls = 0
        self._closed = False
        options = ffi.new("pickd_options *")
        keep = [ffi.new("char[]", c_string(text)) if text else ffi.NULL for text in (socket, name)]
        try:
            options.struct_size = ffi.sizeof("pickd_options")
            options.socket_path, options.name = keep
            options.keys_max, options.channels_max = keys_max, channels_max
            options.connect_timeout_ms = int((finite("open", connect_timeout) or 0) * 1000)
            # To the library 0 is the default, to callers of this package it is none.
            options.spin_us = spin_us if spin_us > 0 else lib.PICKD_NO_SPIN
            options.flags = lib.PICKD_OPEN_BUSY_POLL if busy_poll else 0
        except OverflowError as error:
            raise InvalidError("open", None, str(error)) from error
        opened, words = ffi.new("pickd_client **"), ffi.new("char[]", _WORDS_BYTES)
        options.error, options.error_size = words, _WORDS_BYTES
        code = lib.pickd_open(options, opened)
        if code != 0:
            raise failure("open", code, _text(words))
        self.raw = opened[0]
        # Of a client that is dropped and was never closed. Not at the end of the process, where threads may be in it.
        self._drop = weakref.finalize(self, lib.pickd_close, self.raw)
        self._drop.atexit = False
        block, keys, version = ffi.new("uint32_t *"), ffi.new("uint32_t *"), ffi.new("const char **")
        lib.pickd_daemon_info(self.raw, block, keys, version)
        self.info = Info(block[0], keys[0], ffi.string(version[0]).decode())

    def enter(self, op: str) -> None:
        """Begins a call on `raw`, which leave() ends."""
        with self._lock:
            if self._closed:
                raise ClosedError(op)
            self._calls += 1

    def leave(self) -> None:
        """Ends a call."""
        with self._lock:
            self._calls -= 1
            if self._closed and self._calls == 0:
                self._idle.notify_all()

    def close(self) -> bool:
        """Lets no call begin, waits for those that are under way, and closes. False when it was closed before."""
        with self._lock:
            if self._closed:
                return False
            self._closed = True
            while self._calls > 0:
                self._idle.wait()
        self._drop.detach()
        lib.pickd_close(self.raw)
        return True

    def keep_open(self) -> None:
        """Is not closed by being dropped: it has a queue, which has to be closed before."""
        self._drop.detach()

    def check(self, op: str, code: int) -> None:
        """Raises what a code says. Details are told where they are about the arguments."""
        if code >= 0:
            return
        error = failure(op, code)
        if isinstance(error, (InvalidError, TooBigError)):
            words = ffi.new("char[]", _WORDS_BYTES)
            lib.pickd_last_error(self.raw, words, _WORDS_BYTES)
            error = failure(op, code, _text(words))
        raise error

    def report(self, report: Report, timeout: Optional[float]) -> None:
        """pickd_report(): waits for the daemon's word, or with a timeout of 0 for room in a ring at most."""
        raw, _keep = raw_report(report)
        timeout_us = microseconds("report", timeout)
        code = self.call("report", lambda: lib.pickd_report(self.raw, raw, timeout_us))
        until = time.monotonic() + _ROOM_PATIENCE_S
        while code == -errno.EAGAIN and time.monotonic() < until:
            time.sleep(_ROOM_PAUSE_S)
            code = self.call("report", lambda: lib.pickd_report(self.raw, raw, timeout_us))
        self.check("report", code)

    def call(self, op: str, function: Callable[[], int]) -> int:
        """One call on `raw`, while the client is open; what it returned."""
        self.enter(op)
        try:
            code = function()
            if code != -errno.EAGAIN:
                self.check(op, code)
            return code
        finally:
            self.leave()

    def add_endpoint(self, endpoint: EndpointSpec) -> None:
        """pickd_endpoint_add()."""
        raw, _keep = endpoint_of(endpoint)
        self.call("add endpoint", lambda: lib.pickd_endpoint_add(self.raw, raw))

    def update_endpoint(self, endpoint: EndpointSpec) -> None:
        """pickd_endpoint_update()."""
        raw, _keep = endpoint_of(endpoint)
        self.call("update endpoint", lambda: lib.pickd_endpoint_update(self.raw, raw))

    def remove_endpoint(self, name: str) -> None:
        """pickd_endpoint_remove()."""
        self.call("remove endpoint", lambda: lib.pickd_endpoint_remove(self.raw, c_string(name)))

    def drain_endpoint(self, name: str, on: bool) -> None:
        """pickd_endpoint_drain()."""
        self.call("drain endpoint", lambda: lib.pickd_endpoint_drain(self.raw, c_string(name), 1 if on else 0))

    def reset_endpoint(self, name: str) -> None:
        """pickd_endpoint_reset()."""
        self.call("reset endpoint", lambda: lib.pickd_endpoint_reset(self.raw, c_string(name)))


def _text(words: Any) -> str:
    """What the library put there."""
    return str(ffi.string(words).decode("utf-8", "replace"))


def raw_report(report: Report) -> Any:
    """The report in C memory; raises InvalidError for what C has no room for."""
    try:
        return report_of(report)
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidError("report", None, str(error)) from error
