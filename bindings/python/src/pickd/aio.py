"""AsyncClient: picks that wait in an asyncio event loop, over libpickd's asynchronous queue.

Everything here runs in the thread of the loop, but what is said to use a thread of its own. Tasks submit one after the
other and then wait; once an iteration of the loop, after the tasks that were ready have run, all that was submitted is
rung for and all that has been answered is taken (_turn). Between iterations the loop waits for the queue's descriptor.
"""
from __future__ import annotations

import asyncio
import errno
from collections import OrderedDict, deque
from types import TracebackType
from typing import Any, Callable, Deque, Dict, Optional, Type

from ._native import ffi, lib
from .answer import PEEK, Pick
from .errors import ClosedError, Error, LimitedError, TimedOutError, failure
from .handle import Handle, Info, finite, raw_report
from .memory import RequestMemory
from .request import EndpointSpec, Report, ReportKind, Request, Ticket
from .spin import Spin

_BATCH = lib.PICKDPY_BATCH
_REPORTS_MAX = 65536  # reports that may wait for room in the ring
_ROOM_PAUSE_S = 0.0002  # between looks for room where no answers are to come that tell of it


class _Waiter:
    """A task inside pick()."""

    __slots__ = ("future", "request", "until", "key", "sequence", "timer")

    def __init__(self, future: asyncio.Future[Pick], request: Request, until: Optional[float]) -> None:
        self.future = future
        self.request = request
        self.until = until
        self.key = 0
        self.sequence: Optional[int] = None  # None: in line
        self.timer: Optional[asyncio.TimerHandle] = None


class AsyncClient:
    """A connection to the daemon of this node, for one asyncio event loop.

        async with pickd.AsyncClient() as client:
            pick = await client.pick(pickd.Request(model="m", text=prompt), timeout=0.1)

    Any number of tasks of the loop may use it at once. It does not belong to other threads.
    """

    def __init__(self, socket: Optional[str] = None, *, name: Optional[str] = None, keys_max: int = 0,
                 depth: int = 1024, connect_timeout: float = 2.0, spin_us: int = 20) -> None:
        """Connects not yet: `async with` or open() does.

        socket, name, keys_max, connect_timeout: as of Client.
        depth: picks that may be outstanding, 1 to 4096; further tasks wait their turn.
        spin_us: how long the loop looks for the answer of a pick that is the only one at most before it goes on to
            other things; it looks less, down to hardly ever, while that fails. 0: not at all.
        """
        self._options = (socket, name, keys_max, 0, connect_timeout, 0, False)
        self._depth = depth
        self._spin = Spin(spin_us * 1000)
        self._handle: Optional[Handle] = None
        self._queue: Any = None
        self._answers: Any = None
        self._memory = RequestMemory()
        self._line: OrderedDict[int, _Waiter] = OrderedDict()
        self._outstanding: Dict[int, Optional[_Waiter]] = {}  # None: nobody waits for it any more
        self._reports: Deque[Report] = deque()
        self._next_key = 0
        self._turning = False  # a turn is to come in this iteration of the loop
        self._timer: Optional[asyncio.TimerHandle] = None
        self._closed = False

    async def open(self) -> AsyncClient:
        """Connects, in a thread of its own. Raises what Client raises when it connects."""
        self._loop = asyncio.get_running_loop()
        handle = await self._loop.run_in_executor(None, lambda: Handle(*self._options))
        opened = ffi.new("pickdpy_queue **")
        try:
            handle.check("open", lib.pickdpy_queue_open(handle.raw, max(self._depth, 0), opened))
        except BaseException:
            handle.close()
            raise
        handle.keep_open()
        self._handle, self._queue = handle, opened[0]
        self._answers = ffi.buffer(self._queue.answers)
        self._event_fd = lib.pickdpy_queue_event_fd(self._queue)
        self._loop.add_reader(self._event_fd, self._turn)
        return self

    @property
    def info(self) -> Info:
        """What the daemon granted when the client was opened."""
        return self._open("info").info

    def _open(self, op: str) -> Handle:
        if self._handle is None or self._closed:
            raise ClosedError(op)
        return self._handle

    # ---- Picks ------------------------------------------------------------------------------------------------------

    async def pick(self, request: Request, *, timeout: Optional[float] = None) -> Pick:
        """Picks an endpoint and reserves its load. Report on the ticket of the result.

        The timeout, in seconds, goes to libpickd: where the daemon has not answered by then, or is away, libpickd
        picks by itself and the pick is `degraded`. So it is better than asyncio.wait_for() around this. Without one a
        pick waits for a daemon that is there and does not answer.

        When the task is cancelled the pick is taken back; one that was answered in the same moment is reported as
        CANCELLED. Either way nothing stays reserved.

        Raises what Client.pick() raises.
        """
        self._open("pick")
        loop = self._loop
        timeout = finite("pick", timeout)
        waiter = _Waiter(loop.create_future(), request, None if timeout is None else loop.time() + timeout)
        self._next_key += 1
        waiter.key = self._next_key
        if self._line or not self._submit(waiter):
            self._line[waiter.key] = waiter
            if waiter.until is not None:
                waiter.timer = loop.call_at(waiter.until, self._expire, waiter)
        self._turn_soon()
        try:
            return await waiter.future
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise

    def _submit(self, waiter: _Waiter) -> bool:
        """False when there is no room. What is refused raises."""
        if len(self._outstanding) >= self._depth:
            return False
        raw = self._memory.fill(waiter.request)
        if waiter.until is not None:
            raw.queue_timeout_us = max(int((waiter.until - self._loop.time()) * 1e6), 1)
        code = lib.pickdpy_queue_submit(self._queue, raw, waiter.key)
        self._memory.release()
        if code == 0:
            waiter.sequence = self._queue.sequence
            self._outstanding[waiter.key] = waiter
            return True
        if code == -errno.EAGAIN:
            return False
        self._open("pick").check("pick", code)
        return True

    def _withdraw(self, waiter: _Waiter) -> None:
        """Takes back the pick of a task that was cancelled."""
        if waiter.timer is not None:
            waiter.timer.cancel()
        if self._line.pop(waiter.key, None) is not None or self._closed:
            return
        if self._outstanding.get(waiter.key) is waiter and waiter.sequence is not None:
            if lib.pickdpy_queue_cancel(self._queue, self._queue.client, waiter.sequence) == 0:
                del self._outstanding[waiter.key]
                if self._line:
                    self._turn_soon()
            else:  # its answer is on its way, and is given back when it comes
                self._outstanding[waiter.key] = None
        elif waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
            self._give_back(waiter.future.result())

    def _give_back(self, pick: Pick) -> None:
        try:
            self.report(Report(pick.ticket, ReportKind.CANCELLED))
        except Error:
            pass  # the daemon is away: its lease ends it

    def _expire(self, waiter: _Waiter) -> None:
        """The deadline of one that still stands in line."""
        if self._line.pop(waiter.key, None) is not None and not waiter.future.done():
            waiter.future.set_exception(TimedOutError("pick"))

    # ---- The queue --------------------------------------------------------------------------------------------------

    def _turn_soon(self) -> None:
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Takes what was answered, then submits those in line as far as there is room."""
        self._turning = False
        if self._closed:
            return
        self._take()
        if not self._reports and not self._line:
            return
        outstanding = len(self._outstanding)
        stuck = not self._admit_reports() or not self._admit()
        if len(self._outstanding) > outstanding:
            self._turn_soon()  # rings for them
        elif stuck and self._timer is None and not self._outstanding:
            # The ring may be full of reports, and nothing tells when there is room.
            self._timer = self._loop.call_later(_ROOM_PAUSE_S, self._look_for_room)

    def _look_for_room(self) -> None:
        self._timer = None
        self._turn()

    def _take(self) -> None:
        """Hands answers to their tasks until there is none: that arms the descriptor and rings for what was
        submitted."""
        outstanding, answers, queue = self._outstanding, self._answers, self._queue
        look_ns = self._spin.budget_ns() if len(outstanding) == 1 else 0
        while True:
            count = lib.pickdpy_queue_poll(queue, look_ns)
            if count < 0:
                self._fail(count)
                return
            if look_ns:
                self._spin.learn(count > 0)
                look_ns = 0
            at = 0
            for _ in range(count):
                size, status, key = PEEK.unpack_from(answers, at)
                waiter = outstanding.pop(key, None)
                if waiter is None:
                    if status == 0:
                        self._give_back(Pick(answers[at:at + size]))
                elif not waiter.future.done():
                    if status == 0:
                        waiter.future.set_result(Pick(answers[at:at + size]))
                    else:
                        waiter.future.set_exception(failure("pick", status))
                elif status == 0:  # cancelled, and its task has not run yet: it finds nothing outstanding
                    self._give_back(Pick(answers[at:at + size]))
                at += size
            if count < _BATCH:
                return

    def _admit(self) -> bool:
        """Submits those in line; False when there is no room for all."""
        while self._line:
            waiter = next(iter(self._line.values()))
            if not waiter.future.done():
                try:
                    if not self._submit(waiter):
                        return False
                except Error as error:
                    waiter.future.set_exception(error)
            del self._line[waiter.key]
            if waiter.timer is not None:
                waiter.timer.cancel()
        return True

    def _fail(self, code: int) -> None:
        """The queue cannot be used any more, which is so in a forked child: all who wait are told."""
        waiters = [waiter for waiter in self._outstanding.values() if waiter is not None] + list(self._line.values())
        self._outstanding.clear()
        self._line.clear()
        for waiter in waiters:
            if not waiter.future.done():
                waiter.future.set_exception(failure("pick", code))

    # ---- Reports ----------------------------------------------------------------------------------------------------

    def report(self, report: Report) -> None:
        """Hands a report over and returns: no await, so that it may stand in an `except` or `finally` of a task that
        was cancelled. What the daemon makes of it is counted there.

        One that finds the ring full goes into it a moment later, and errors of that are not told. Reports arrive in
        the order of the calls. LimitedError: 65,536 wait for room already. Else as Client.report().
        """
        handle = self._open("report")
        raw, _keep = raw_report(report)
        if not self._reports:
            code = lib.pickdpy_queue_report(self._queue, raw)
            if code != -errno.EAGAIN:
                if self._outstanding:
                    self._turn_soon()  # rings for it
                handle.check("report", code)
                return
        if len(self._reports) >= _REPORTS_MAX:
            raise LimitedError("report")
        self._reports.append(report)
        self._turn_soon()

    def _admit_reports(self) -> bool:
        """Hands over reports that found the ring full; False when some still do."""
        while self._reports:
            raw, _keep = raw_report(self._reports[0])
            if lib.pickdpy_queue_report(self._queue, raw) == -errno.EAGAIN:
                return False
            self._reports.popleft()
        return True

    async def report_and_wait(self, report: Report, *, timeout: Optional[float] = None) -> None:
        """Waits for what the daemon says, in a thread of the loop's default executor: for tests and for who must
        know. As Client.report_and_wait()."""
        handle = self._open("report")
        await self._in_thread(lambda: handle.report(report, timeout))

    async def _in_thread(self, call: Callable[[], object]) -> None:
        await self._loop.run_in_executor(None, call)

    # ---- Endpoints --------------------------------------------------------------------------------------------------

    async def add_endpoint(self, endpoint: EndpointSpec) -> None:
        """As Client.add_endpoint(), in a thread of the loop's default executor, as the others here."""
        handle = self._open("add endpoint")
        await self._in_thread(lambda: handle.add_endpoint(endpoint))

    async def update_endpoint(self, endpoint: EndpointSpec) -> None:
        """As Client.update_endpoint()."""
        handle = self._open("update endpoint")
        await self._in_thread(lambda: handle.update_endpoint(endpoint))

    async def remove_endpoint(self, name: str) -> None:
        """As Client.remove_endpoint()."""
        handle = self._open("remove endpoint")
        await self._in_thread(lambda: handle.remove_endpoint(name))

    async def drain_endpoint(self, name: str, on: bool = True) -> None:
        """As Client.drain_endpoint()."""
        handle = self._open("drain endpoint")
        await self._in_thread(lambda: handle.drain_endpoint(name, on))

    async def reset_endpoint(self, name: str) -> None:
        """As Client.reset_endpoint()."""
        handle = self._open("reset endpoint")
        await self._in_thread(lambda: handle.reset_endpoint(name))

    # ---- The end ----------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Ends what is under way with ClosedError and closes the connection. The daemon releases the reservations that
        were not reported on. A second call does nothing."""
        if self._closed or self._handle is None:
            self._closed = True
            return
        handle = self._handle
        self._turn()  # reports that found no room, as far as there is some now
        self._closed = True
        self._loop.remove_reader(self._event_fd)
        if self._timer is not None:
            self._timer.cancel()
        for waiter in self._line.values():
            if waiter.timer is not None:
                waiter.timer.cancel()
        self._fail(-ClosedError.errno)
        self._answers = None
        lib.pickdpy_queue_close(self._queue)
        # It waits for calls in other threads.
        await self._in_thread(handle.close)

    async def __aenter__(self) -> AsyncClient:
        return await self.open()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()
