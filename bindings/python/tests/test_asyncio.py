"""The asyncio client against a real daemon: many tasks, cancelled tasks, a daemon that stops, dies and comes back."""
import asyncio
import errno
import unittest

import pickd
from daemon import Daemon, prompt
from pickd import Report, ReportKind, Request
from pickd.spin import Spin


def inflight(daemon):
    return sum(endpoint["inflight_requests"] for endpoint in daemon.told("endpoints")["endpoints"])


def counters(daemon):
    return daemon.told("status")["counters"]


class AsyncioTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)  # which tells of every turn that takes long
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)

    async def client(self, **options):
        client = await pickd.AsyncClient(self.daemon.socket, **options).open()
        self.addAsyncCleanup(client.close)
        return client

    async def settle(self, client):
        """Returns when the daemon has applied all that was handed over before."""
        pick = await client.pick(Request(model="m"), timeout=60)
        await client.report_and_wait(Report(pick.ticket, ReportKind.CANCELLED), timeout=60)

    async def idle(self, client):
        """Waits until nothing is reserved, which a lost report would prevent for ever."""
        await self.settle(client)
        while inflight(self.daemon) > 0:
            await asyncio.sleep(0.01)

    async def test_picks_and_reports(self):
        async with pickd.AsyncClient(self.daemon.socket) as client:
            self.assertEqual(64, client.info.block_tokens)
            first = await client.pick(Request(model="m", text=prompt(1, 640)))
            client.report(Report(first.ticket, ReportKind.FIRST_TOKEN))
            again = await client.pick(Request(model="m", text=prompt(1, 640)), timeout=60)
            self.assertEqual(first.name, again.name)
            self.assertGreaterEqual(again.endpoints[0].match_tokens, 576)
            done = Report(first.ticket, ReportKind.DONE, output_tokens=3)
            await client.report_and_wait(done, timeout=60)
            with self.assertRaises(pickd.StaleError):
                await client.report_and_wait(done, timeout=60)

    async def test_errors_are_raised_in_the_task_that_asked(self):
        client = await self.client()
        for request, kind in ((Request(model="unknown"), pickd.NotFoundError), (Request(subset=[]), pickd.NoEndpointError),
                              (Request(endpoints_max=9), pickd.InvalidError), (Request(priority=2**40), pickd.InvalidError),
                              (Request(model="m", text="a", token_ids=[1]), pickd.InvalidError)):
            with self.assertRaises(kind) as raised:
                await client.pick(request, timeout=60)
            self.assertEqual(kind.errno, raised.exception.errno)
        with self.assertRaises(pickd.InvalidError):
            client.report(Report(pickd.Ticket(1, 1), 77))
        self.assertFalse((await client.pick(Request(model="m"))).degraded)

    async def test_ten_thousand_tasks_each_get_an_answer_and_are_accounted_for(self):
        client = await self.client()
        texts = [prompt(seed, 640) for seed in range(50)]

        async def one(at):
            pick = await client.pick(Request(model="m", text=texts[at % len(texts)]))
            await asyncio.sleep(0)
            client.report(Report(pick.ticket, ReportKind.DONE, output_tokens=1))
            return pick.ticket

        before = counters(self.daemon)
        tickets = await asyncio.gather(*(one(at) for at in range(10000)))
        self.assertEqual(10000, len(set(tickets)))
        await self.idle(client)
        after = counters(self.daemon)
        self.assertEqual((10001, 10000, 10000), tuple(
            after[name] - before[name] for name in
            ("pickd_picks_total", "pickd_requests_done_total", "pickd_output_tokens_total")))
        self.assertEqual(before["pickd_reports_unknown_total"], after["pickd_reports_unknown_total"])

    async def test_few_outstanding_make_the_rest_wait_their_turn(self):
        client = await self.client(depth=4)
        picks = await asyncio.gather(*(client.pick(Request(model="m", text=prompt(at, 64))) for at in range(500)))
        self.assertEqual(500, len({pick.ticket for pick in picks}))

    async def test_long_prompts_that_do_not_fit_the_ring_together_all_get_an_answer(self):
        client = await self.client()
        text = prompt(1, 32000)  # 4 KiB of keys: 800 KiB through a ring of 128
        picks = await asyncio.gather(*(client.pick(Request(model="m", text=text)) for _ in range(200)))
        self.assertEqual(32000, picks[-1].prompt_tokens)

    async def test_more_reports_than_the_ring_holds_all_arrive(self):
        client = await self.client(depth=4096)
        picks = await asyncio.gather(*(client.pick(Request(model="m")) for _ in range(3000)))
        self.daemon.stand_still()
        for pick in picks:
            client.report(Report(pick.ticket, ReportKind.FIRST_TOKEN))
            client.report(Report(pick.ticket, ReportKind.DONE))
        self.daemon.go_on()
        await self.idle(client)
        self.assertEqual(3000, counters(self.daemon)["pickd_requests_done_total"])

    async def test_a_cancelled_task_leaves_no_reservation(self):
        client = await self.client()
        for rounds in range(40):
            tasks = [asyncio.ensure_future(client.pick(Request(model="m", text=prompt(at, 64)))) for at in range(50)]
            for _ in range(rounds % 8):  # before the submission, before the answer, with it, after it
                await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            for found in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(found, pickd.Pick):
                    client.report(Report(found.ticket, ReportKind.DONE))
                else:
                    self.assertIsInstance(found, asyncio.CancelledError)
        await self.idle(client)

    async def test_an_answer_that_comes_with_the_cancellation_is_given_back(self):
        client = await self.client()
        task = asyncio.ensure_future(client.pick(Request(model="m")))
        await asyncio.sleep(0)
        waiter = next(iter(client._outstanding.values()))
        while not waiter.future.done():
            client._take()  # the task has had no chance to run since
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await self.idle(client)
        self.assertEqual(1, counters(self.daemon)["pickd_picks_total"] - 1)

    async def test_picks_cancelled_while_the_daemon_stands_still_leave_nothing(self):
        client = await self.client(depth=8)
        self.daemon.stand_still()
        tasks = [asyncio.ensure_future(client.pick(Request(model="m"))) for _ in range(20)]  # 12 of them in line
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.assertEqual((0, 0), (len(client._line), len(client._outstanding)))
        self.daemon.go_on()
        await self.idle(client)

    async def test_a_timeout_covers_a_daemon_that_does_not_answer(self):
        client = await self.client(depth=2)
        self.daemon.stand_still()
        found = await asyncio.gather(*(client.pick(Request(model="m"), timeout=0.05) for _ in range(3)),
                                     return_exceptions=True)
        self.assertEqual([True, True], [pick.degraded for pick in found[:2]])
        if isinstance(found[2], Exception):  # it stood in line, and may have come out of it in time
            self.assertIsInstance(found[2], pickd.TimedOutError)
            self.assertIsInstance(found[2], asyncio.TimeoutError)
        self.daemon.go_on()
        self.assertFalse((await client.pick(Request(model="m"))).degraded)

    async def test_what_is_outstanding_when_the_daemon_dies_is_answered(self):
        client = await self.client()
        self.daemon.stand_still()
        tasks = [asyncio.ensure_future(client.pick(Request(model="m", text=prompt(at, 64)))) for at in range(200)]
        await asyncio.sleep(0)
        self.daemon.kill()
        for pick in await asyncio.gather(*tasks):
            self.assertTrue(pick.degraded)
            client.report(Report(pick.ticket, ReportKind.DONE))
        self.daemon.start()
        while (await client.pick(Request(model="m"))).degraded:
            await asyncio.sleep(0.01)

    async def test_close_ends_what_is_under_way(self):
        client = await self.client(depth=16)
        self.daemon.stand_still()
        tasks = [asyncio.ensure_future(client.pick(Request(model="m"), timeout=None if at else 60)) for at in range(50)]
        await asyncio.sleep(0)
        await client.close()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            self.assertIsInstance(found, pickd.ClosedError)
        self.daemon.go_on()
        await client.close()
        with self.assertRaises(pickd.ClosedError):
            await client.pick(Request(model="m"))
        with self.assertRaises(pickd.ClosedError):
            client.report(Report(pickd.Ticket(1, 1), ReportKind.DONE))

    async def test_endpoints_are_changed_without_holding_the_loop(self):
        client = await self.client()
        await client.add_endpoint(pickd.EndpointSpec("new", "127.0.0.1:1", models=["added"]))
        self.assertEqual("new", (await client.pick(Request(model="added"))).name)
        await client.update_endpoint(pickd.EndpointSpec("new", "127.0.0.1:2", models=["added"]))
        await client.reset_endpoint("new")
        await client.drain_endpoint("new")
        with self.assertRaises(pickd.NoEndpointError):
            await client.pick(Request(model="added"))
        await client.remove_endpoint("new")

    async def test_nobody_listening_is_told(self):
        with self.assertRaises(pickd.NotConnectedError):
            await pickd.AsyncClient(self.daemon.socket + "-not").open()
        with self.assertRaises(pickd.InvalidError):
            await pickd.AsyncClient(self.daemon.socket, depth=5000).open()


class PureTest(unittest.TestCase):
    def test_looking_that_fails_is_done_less_and_one_success_restores_it(self):
        spin = Spin(20000)
        for _ in range(4):
            self.assertGreater(spin.budget_ns(), 0)
            spin.learn(False)
        looks = [spin.budget_ns() for _ in range(128)]
        self.assertEqual([20000, 20000], [look for look in looks if look])
        spin.learn(True)
        self.assertEqual(20000, spin.budget_ns())
        self.assertEqual([0] * 100, [Spin(0).budget_ns() for _ in range(100)])

    def test_every_kind_of_error_has_a_status(self):
        for error, status in ((pickd.ShedError("pick"), 429), (pickd.LimitedError("pick"), 429),
                              (pickd.NotConnectedError("pick"), 503), (pickd.TimedOutError("pick"), 504),
                              (asyncio.TimeoutError(), 504), (asyncio.CancelledError(), 499),
                              (pickd.ClosedError("pick"), 503), (pickd.Error("pick", errno.EIO), 503)):
            self.assertEqual(status, pickd.http_status(error), repr(error))


if __name__ == "__main__":
    unittest.main()
