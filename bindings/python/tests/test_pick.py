"""Picks, requests and errors of the blocking client against a real daemon."""
import array
import hashlib
import math
import os
import pickle
import threading
import unittest

import pickd
from daemon import ENGINES, Daemon, prompt
from pickd import Report, ReportKind, Request


class PickTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon()
        cls.addClassCleanup(cls.daemon.close)

    def setUp(self):
        self.client = pickd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def pick(self, **fields):
        return self.client.pick(Request(model="m", **fields), timeout=60)

    def test_a_pick_lists_the_winner_and_fallbacks(self):
        pick = self.pick(text=prompt(1, 1000))
        self.assertEqual({"engine-%d" % at: "127.0.0.1:%d" % (9000 + at) for at in range(ENGINES)},
                         {endpoint.name: endpoint.address for endpoint in pick.endpoints})
        self.assertEqual((pick.name, pick.address), (pick.endpoints[0].name, pick.endpoints[0].address))
        self.assertEqual((1000, False, False, None, None),
                         (pick.prompt_tokens, pick.degraded, pick.cut, pick.prefill, pick.encode))
        for predicted in (pick.ttft_ms, pick.itl_ms):  # None until there are samples
            self.assertTrue(predicted is None or predicted > 0, predicted)
        self.assertNotEqual(pickd.Ticket(0, 0), pick.ticket)
        self.assertEqual(2, len(self.pick(endpoints_max=2).endpoints))

    def test_the_daemon_tells_what_it_granted(self):
        self.assertEqual((64, 2048, pickd.__version__), self.client.info)

    def test_a_prompt_is_matched_however_it_is_cut_into_segments(self):
        text = prompt(2, 640)
        first = self.pick(text=text)
        second = self.pick(text=[text[:1], "", text[1:700].encode(), text[700:]])
        self.assertEqual(first.name, second.name)
        self.assertGreaterEqual(second.endpoints[0].match_tokens, 576)
        self.assertEqual(0, self.pick(text=text, salt="tenant").endpoints[0].match_tokens)
        self.assertEqual(0, self.pick(text=text, adapter="lora").endpoints[0].match_tokens)

    def test_token_ids_extras_and_attributes_reach_the_library(self):
        ids = list(range(640))
        fields = dict(attributes={"x-tier": "gold", "x-region": ""}, session_id="s", fairness_id="f", request_id="r",
                      slo_ttft_ms=1000.0, slo_itl_ms=50.0, priority=1, stream=True, expected_output_tokens=10)

        def image(name):
            return [pickd.Extra(100, hashlib.sha256(name).digest())]

        first = self.pick(token_ids=ids, extras=image(b"cat"), **fields)
        self.assertEqual(len(ids), first.prompt_tokens)
        again = self.pick(token_ids=array.array("I", ids), extras=image(b"cat"), **fields)
        self.assertGreaterEqual(again.endpoints[0].match_tokens, 576)
        other = self.pick(token_ids=memoryview(array.array("I", ids)), extras=image(b"dog"), **fields)
        self.assertLess(other.endpoints[0].match_tokens, 128)

    def test_a_subset_is_heeded_and_an_empty_one_means_nobody(self):
        for _ in range(8):
            pick = self.pick(subset=["engine-3", "127.0.0.1:9001"])
            self.assertLessEqual({endpoint.name for endpoint in pick.endpoints}, {"engine-3", "engine-1"})
        with self.assertRaises(pickd.NoEndpointError):
            self.pick(subset=[])

    def test_a_dry_run_leaves_nothing(self):
        self.pick(text=prompt(3, 640), dry_run=True)
        self.assertEqual(0, self.pick(text=prompt(3, 640), dry_run=True).endpoints[0].match_tokens)

    def test_errors_have_types_words_and_a_status(self):
        for fields, kind, status in (
                (dict(model="unknown"), pickd.NotFoundError, 404),
                (dict(text="a", token_ids=[1]), pickd.InvalidError, 400),
                (dict(model=prompt(1, 100)), pickd.TooBigError, 400),
                (dict(endpoints_max=9), pickd.InvalidError, 400),
                (dict(endpoints_max=-1), pickd.InvalidError, 400),
                (dict(prompt_tokens=-1), pickd.InvalidError, 400),
                (dict(expected_output_tokens=2**40), pickd.InvalidError, 400),
                (dict(priority=40000), pickd.InvalidError, 400),
                (dict(priority=2**40), pickd.InvalidError, 400),
                (dict(token_ids=[-1]), pickd.InvalidError, 400),
                (dict(token_ids=array.array("H", [1])), pickd.InvalidError, 400),
                (dict(model=7), pickd.InvalidError, 400),
                (dict(subset=["nobody"]), pickd.NoEndpointError, 503)):
            with self.subTest(fields=list(fields)), self.assertRaises(kind) as raised:
                self.client.pick(Request(**{"model": "m", **fields}), timeout=60)
            self.assertEqual(status, pickd.http_status(raised.exception))
            self.assertTrue(str(raised.exception).startswith("pick: "))
            self.assertEqual(kind.errno, raised.exception.errno)
            copy = pickle.loads(pickle.dumps(raised.exception))
            self.assertEqual((kind, str(raised.exception)), (type(copy), str(copy)))
        self.assertGreater(len(self.pick().endpoints), 0, "a refused request leaves the client as it was")

    def test_an_argument_that_is_wrong_is_told_in_words(self):
        with self.assertRaisesRegex(pickd.InvalidError, "endpoints_max"):
            self.pick(endpoints_max=9)

    def test_reports_are_applied_once(self):
        ticket = self.pick(text=prompt(4, 64)).ticket
        self.client.report(Report(ticket, ReportKind.FIRST_TOKEN))
        done = Report(ticket, ReportKind.DONE, prompt_tokens=64, cached_tokens=0, output_tokens=5)
        self.client.report_and_wait(done, timeout=60)
        with self.assertRaises(pickd.StaleError):
            self.client.report_and_wait(done, timeout=60)

    def test_counts_that_are_none_are_refused_in_reports(self):
        ticket = self.pick(text=prompt(4, 64)).ticket
        for count in (-5, 2**33):
            for field in ("prompt_tokens", "cached_tokens", "output_tokens"):
                with self.assertRaisesRegex(pickd.InvalidError, "is no count"):
                    self.client.report(Report(ticket, ReportKind.DONE, **{field: count}))
        self.client.report_and_wait(Report(ticket, ReportKind.DONE), timeout=math.inf)

    def test_a_timeout_may_be_for_ever_but_has_to_be_a_number(self):
        self.assertFalse(self.client.pick(Request(model="m"), timeout=math.inf).degraded)
        for call in (lambda: self.client.pick(Request(model="m"), timeout=math.nan),
                     lambda: pickd.Client(self.daemon.socket, connect_timeout=math.nan)):
            with self.assertRaisesRegex(pickd.InvalidError, "nan"):
                call()

    def test_threads_pick_at_once(self):
        def work(seed):
            for _ in range(200):
                pick = self.pick(text=prompt(seed, 64))
                self.client.report(Report(pick.ticket, ReportKind.DONE))
                done.append(pick.name)

        done = []
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(8 * 200, len(done))

    def test_endpoints_are_added_changed_and_removed(self):
        spec = pickd.EndpointSpec("new", "127.0.0.1:1", models=["added"], labels={"zone": "a"}, capacity_tokens=100000)
        self.client.add_endpoint(spec)
        with self.assertRaises(pickd.ExistsError):
            self.client.add_endpoint(spec)
        self.assertEqual("127.0.0.1:1", self.client.pick(Request(model="added"), timeout=60).address)
        spec.address = "127.0.0.1:2"
        self.client.update_endpoint(spec)
        self.assertEqual("127.0.0.1:2", self.client.pick(Request(model="added"), timeout=60).address)
        self.client.drain_endpoint("new")
        with self.assertRaises(pickd.NoEndpointError):
            self.client.pick(Request(model="added"), timeout=60)
        self.client.drain_endpoint("new", False)
        self.client.reset_endpoint("new")
        self.client.remove_endpoint("new")
        with self.assertRaises(pickd.NotFoundError):
            self.client.remove_endpoint("new")
        with self.assertRaisesRegex(pickd.InvalidError, "NUL"):
            self.client.remove_endpoint("engine-0\0")

    def test_a_closed_client_says_so(self):
        self.client.close()
        self.client.close()
        for call in (self.pick, lambda: self.client.report(Report(pickd.Ticket(1, 1), ReportKind.DONE))):
            with self.assertRaises(pickd.ClosedError):
                call()

    def test_a_forked_child_is_refused(self):
        self.pick()
        child = os.fork()
        if child == 0:
            try:
                self.pick()
            except pickd.ForkedError:
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    def test_nobody_listening_is_told(self):
        with self.assertRaises(pickd.NotConnectedError) as raised:
            pickd.Client(self.daemon.socket + "-not")
        self.assertIn(self.daemon.socket + "-not", raised.exception.detail)
        self.assertIn(raised.exception.detail, str(raised.exception))


STAGES = """  - {name: prefill, address: "127.0.0.1:9100", role: prefill}
  - {name: decode, address: "127.0.0.1:9200", role: decode}
  - {name: encode, address: "127.0.0.1:9300", role: encode}
"""
SPLIT = """scheduling:
  apiVersion: llm-d.ai/v1alpha1
  kind: EndpointPickerConfig
  plugins:
    - {type: always-disagg-pd-decider}
    - {type: always-disagg-multimodal-decider}
    - type: disagg-profile-handler
      parameters: {deciders: {prefill: always-disagg-pd-decider, encode: always-disagg-multimodal-decider}}
    - {type: encode-filter}
    - {type: prefill-filter}
    - {type: decode-filter}
    - {type: max-score-picker}
  schedulingProfiles:
    - {name: encode, plugins: [{pluginRef: encode-filter}, {pluginRef: max-score-picker}]}
    - {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: max-score-picker}]}
    - {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: max-score-picker}]}"""


class SplitTest(unittest.IsolatedAsyncioTestCase):
    """Requests whose stages are done by different endpoints, by both clients."""

    def setUp(self):
        self.daemon = Daemon(SPLIT, endpoints=STAGES, profile=None)
        self.addCleanup(self.daemon.close)

    async def test_a_pick_tells_who_computes_the_prompt_and_who_encodes_its_images(self):
        text, image = prompt(6, 1000), [pickd.Extra(100, hashlib.sha256(b"cat").digest())]
        async with pickd.AsyncClient(self.daemon.socket) as tasks:
            with pickd.Client(self.daemon.socket) as threads:
                for extras, encode in ((image, ("encode", "127.0.0.1:9300", pickd.Role.ENCODE)), ((), None)):
                    request = Request(model="m", text=text, extras=extras)
                    for pick in (threads.pick(request, timeout=60), await tasks.pick(request, timeout=60)):
                        told = [(stage.name, stage.address, stage.role) if stage else None
                                for stage in (*pick.endpoints, pick.prefill, pick.encode)]
                        self.assertEqual([("decode", "127.0.0.1:9200", pickd.Role.DECODE),
                                          ("prefill", "127.0.0.1:9100", pickd.Role.PREFILL), encode], told)


class AloneTest(unittest.TestCase):
    """What needs a daemon for itself: endpoints that failed; a daemon that stops, dies and comes back."""

    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)
        self.client = pickd.Client(self.daemon.socket)
        self.addCleanup(self.client.close)

    def test_a_fallback_moves_the_reservation(self):
        pick = self.client.pick(Request(model="m"), timeout=60)
        self.client.report_and_wait(Report(pick.ticket, ReportKind.FALLBACK, endpoint=pick.endpoints[1].name), timeout=60)
        inflight = {e["name"]: e["inflight_requests"] for e in self.daemon.told("endpoints")["endpoints"]}
        self.client.report_and_wait(Report(pick.ticket, ReportKind.CANCELLED), timeout=60)
        left = {e["name"]: e["inflight_requests"] for e in self.daemon.told("endpoints")["endpoints"]}
        self.assertEqual(1, inflight[pick.endpoints[1].name] - left[pick.endpoints[1].name])
        self.assertEqual(0, inflight[pick.name] - left[pick.name])
        again = self.client.pick(Request(model="m"), timeout=60)
        with self.assertRaises(pickd.NotFoundError):
            self.client.report_and_wait(Report(again.ticket, ReportKind.FALLBACK, endpoint="nobody"), timeout=60)

    def test_picks_go_on_without_the_daemon_and_come_back_to_it(self):
        first = self.client.pick(Request(model="m", text=prompt(5, 640)), timeout=60)
        self.client.report_and_wait(Report(first.ticket, ReportKind.FIRST_TOKEN), timeout=60)
        self.daemon.kill()
        pick = self.client.pick(Request(model="m", text=prompt(5, 640)), timeout=60)
        self.assertEqual((True, pickd.Reason.DEGRADED, first.name), (pick.degraded, pick.reason, pick.name))
        self.client.report(Report(pick.ticket, ReportKind.DONE))
        with self.assertRaises(pickd.NotConnectedError):
            self.client.report_and_wait(Report(first.ticket, ReportKind.DONE), timeout=60)
        self.daemon.start()
        while self.client.pick(Request(model="m"), timeout=60).degraded:
            pass
        self.client.report_and_wait(Report(first.ticket, ReportKind.DONE), timeout=60)

    def test_a_timeout_covers_a_daemon_that_does_not_answer(self):
        self.daemon.stand_still()
        pick = self.client.pick(Request(model="m"), timeout=0.05)
        self.assertTrue(pick.degraded)
        with self.assertRaises(pickd.NotFoundError):
            self.client.pick(Request(model="unknown"), timeout=0.05)
        self.daemon.go_on()

    def test_close_waits_for_calls_under_way(self):
        self.daemon.stand_still()
        picks = []
        thread = threading.Thread(target=lambda: picks.append(self.client.pick(Request(model="m"), timeout=0.3)))
        thread.start()
        while not self.client._handle._calls:  # it is inside
            pass
        self.client.close()
        thread.join()
        self.assertTrue(picks[0].degraded)
        self.daemon.go_on()


if __name__ == "__main__":
    unittest.main()
