"""Nothing is left behind: memory, descriptors, objects, threads."""
import asyncio
import gc
import os
import threading
import unittest

import pickd
from daemon import Daemon, prompt
from pickd import Report, ReportKind, Request, body


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def objects():
    """How many of this package's objects there are."""
    gc.collect()
    return sum(type(found).__module__.startswith("pickd") for found in gc.get_objects())


class LeakTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)
        self.request = Request(model="m", text=[prompt(1, 600), prompt(2, 40)], attributes={"a": "b"}, session_id="s")

    def grows(self, once, times, objects_too=True):
        """Memory in KiB that `times` calls took, after some that filled what is kept."""
        for _ in range(max(times // 4, 1)):
            once()
        before, found = resident_kib(), objects()
        for _ in range(times):
            once()
        if objects_too:
            self.assertEqual(found, objects())
        return resident_kib() - before

    def test_picks_reports_and_refusals_leave_no_memory(self):
        with pickd.Client(self.daemon.socket) as client:
            def once():
                pick = client.pick(self.request, timeout=60)
                self.assertGreater(len(pick.endpoints), 0)
                client.report(Report(pick.ticket, ReportKind.DONE))
                for wrong in (Request(model="unknown"), Request(priority=2**40), Request(endpoints_max=9)):
                    with self.assertRaises(pickd.Error):
                        client.pick(wrong, timeout=60)

            # A hundred bytes a turn would be 400 KiB more than the noise.
            self.assertLess(self.grows(once, 8000), 1200)

    def test_tasks_cancelled_or_not_leave_no_memory(self):
        async def main():
            async with pickd.AsyncClient(self.daemon.socket) as client:
                async def turn():
                    tasks = [asyncio.ensure_future(client.pick(self.request)) for _ in range(100)]
                    await asyncio.sleep(0)
                    for task in tasks[::3]:
                        task.cancel()
                    for found in await asyncio.gather(*tasks, return_exceptions=True):
                        if isinstance(found, pickd.Pick):
                            client.report(Report(found.ticket, ReportKind.DONE))

                for _ in range(30):
                    await turn()
                before = resident_kib()
                for _ in range(120):
                    await turn()
                gc.collect()
                self.assertLess(resident_kib() - before, 1200)
                # The queue itself and what it holds.
                self.assertEqual((0, 0, 0), (len(client._outstanding), len(client._line), len(client._reports)))

        asyncio.run(main())

    def test_bodies_and_answers_leave_no_memory(self):
        data = b'{"model": "m", "messages": [{"role": "user", "content": "' + b"Hello " * 500 + b'"}]}'

        def once():
            reader, answer = body.Reader(), body.Answer()
            reader.read("/v1/chat/completions", data, {"x-session-id": "s"})
            reader.request()
            answer.begin(body.Api.CHAT, 200, {"content-type": "application/json"})
            answer.add(b'{"choices": [{"message": {"content": "Hi"}}]}')
            answer.end()
            answer.report(pickd.Ticket(1, 1))

        self.assertLess(self.grows(once, 8000), 1200)

    def test_clients_leave_no_descriptor_and_no_thread(self):
        async def once():
            async with pickd.AsyncClient(self.daemon.socket) as client:
                await asyncio.gather(*(client.pick(self.request) for _ in range(20)))
            with pickd.Client(self.daemon.socket) as blocking:
                blocking.pick(self.request, timeout=60)

        async def main():
            await once()
            before = (len(os.listdir("/proc/self/fd")), threading.active_count())
            for _ in range(20):
                await once()
            self.assertEqual(before[0], len(os.listdir("/proc/self/fd")))
            found = objects()
            await once()
            self.assertEqual(found, objects())

        asyncio.run(main())

    def test_a_client_that_is_dropped_is_closed(self):
        def once():
            pickd.Client(self.daemon.socket).pick(self.request, timeout=60)
            gc.collect()

        once()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            once()
        self.assertEqual(before, len(os.listdir("/proc/self/fd")))


if __name__ == "__main__":
    unittest.main()
