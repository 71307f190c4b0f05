"""Client: picks that wait in their thread."""
from __future__ import annotations

from types import TracebackType
from typing import Any, List, Optional, Tuple, Type

from ._native import ffi, lib
from .answer import Pick
from .handle import Handle, Info, microseconds
from .memory import RequestMemory
from .request import EndpointSpec, Report, Request

_ANSWER_BYTES = lib.PICKDPY_ANSWER_BYTES
_Scratch = Tuple[RequestMemory, Any, Any, Any]


class Client:
    """A connection to the daemon of this node, for threads.

    Its methods may be called by any number of threads at once; the interpreter's lock is not held while one waits.
    Opening it connects, and raises NotConnectedError (nobody listens at the path), AccessError, NotPermittedError,
    TooManyError, TimedOutError, VersionError, InvalidError, TooBigError or OutOfMemoryError.

    A call that waits in the library does not see Ctrl-C before it returns: give it a timeout. A child made by fork()
    must open a client of its own.
    """

    def __init__(self, socket: Optional[str] = None, *, name: Optional[str] = None, keys_max: int = 0,
                 channels_max: int = 0, connect_timeout: float = 2.0, spin_us: int = 50,
                 busy_poll: bool = False) -> None:
        """Connects.

        socket: path of the daemon's; None: $PICKD_SOCKET, else /run/pickd/pickd.sock.
        name: shown to operators; None: the name of the program.
        keys_max: longest prompt in prefix blocks, 16 to 16384; 0: 2048 (131,072 tokens of 64 a block). The daemon may
            grant less. Longer prompts are cut, and the pick says so.
        channels_max: picks that may wait at once, 1 to 1024; 0: 64. Further threads wait their turn.
        connect_timeout: in seconds.
        spin_us: how long a pick looks for its answer at most before it sleeps; it looks less while that fails. 0: not.
        busy_poll: picks never sleep: lowest latency for a core given away.
        """
        self._handle = Handle(socket, name, keys_max, channels_max, connect_timeout, spin_us, busy_poll)
        self._scratch: List[_Scratch] = []

    @property
    def info(self) -> Info:
        """What the daemon granted when the client was opened."""
        return self._handle.info

    def pick(self, request: Request, *, timeout: Optional[float] = None) -> Pick:
        """Picks an endpoint and reserves its load. Report on the ticket of the result.

        Waits at most `timeout` seconds (None: as long as it takes). Where the daemon has not answered shortly before
        that, or is away, libpickd picks by itself and the pick is `degraded`.

        Raises NoEndpointError, ShedError, LimitedError, NotFoundError, InvalidError (both text and token ids; extras
        out of order; endpoints_max over 8; priority out of range), TooBigError, TimedOutError and NotConnectedError
        (only where no endpoint is known), ClosedError, ForkedError.
        """
        try:
            scratch = self._scratch.pop()  # of nobody else then: list.pop is one step
        except IndexError:
            scratch = (RequestMemory(), ffi.gc(lib.pickd_result_new(), lib.pickd_result_free),
                       ffi.new("uint8_t[]", _ANSWER_BYTES), ffi.new("uint32_t *"))
        memory, result, answer, _ = scratch
        raw = memory.fill(request)
        handle = self._handle
        handle.enter("pick")
        try:
            code = lib.pickdpy_pick(handle.raw, raw, microseconds("pick", timeout), result, answer)
            if code != 0:
                handle.check("pick", code)
        finally:
            handle.leave()
            memory.release()
            self._scratch.append(scratch)
        size = int.from_bytes(ffi.buffer(answer, 4)[:], "little")
        return Pick(ffi.buffer(answer, size)[:])

    def report(self, report: Report) -> None:
        """Hands a report over and returns; what the daemon makes of it is counted there.

        While the daemon is away reports on degraded picks succeed, and so does the end of a request of this client,
        whose reservation the daemon releases when it is back, without its usage; others raise NotConnectedError, and
        may be repeated then. While the rings are full it waits for room, for a second at most: LimitedError.
        """
        self._handle.report(report, 0.0)

    def report_and_wait(self, report: Report, *, timeout: Optional[float] = None) -> None:
        """Waits for what the daemon says.

        Raises StaleError (unknown ticket, or its request ended already), NotFoundError (no such fallback endpoint),
        NotPermittedError (another user's ticket), TimedOutError (it may yet be applied), and what report() raises.
        """
        self._handle.report(report, timeout)

    def add_endpoint(self, endpoint: EndpointSpec) -> None:
        """Adds an endpoint: ExistsError when the name is taken, TooBigError when the table is full.

        Changes of endpoints are for the users in listen.admin_uids of the daemon, else NotPermittedError. They wait
        for the daemon's word.
        """
        self._handle.add_endpoint(endpoint)

    def update_endpoint(self, endpoint: EndpointSpec) -> None:
        """Replaces what is known of an endpoint; NotFoundError. A new address is a new engine: its prefixes and
        in-flight counts start from nothing."""
        self._handle.update_endpoint(endpoint)

    def remove_endpoint(self, name: str) -> None:
        """Removes an endpoint; its prefixes are dead when this returns. NotFoundError."""
        self._handle.remove_endpoint(name)

    def drain_endpoint(self, name: str, on: bool = True) -> None:
        """Lets no new picks go to an endpoint, or lets them in again. NotFoundError."""
        self._handle.drain_endpoint(name, on)

    def reset_endpoint(self, name: str) -> None:
        """Forgets what an endpoint had cached and in flight: its engine was restarted. NotFoundError."""
        self._handle.reset_endpoint(name)

    def close(self) -> None:
        """Closes the connection, after the calls that are under way. The daemon releases the reservations that were
        not reported on. A second call does nothing."""
        self._handle.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
