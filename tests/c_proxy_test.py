#!/usr/bin/env python3
"""gateways/c-proxy between callers, real engines and a real daemon: streaming, aborts, retries, refusals, and the
commands of its README. The proxy is built with AddressSanitizer and must end without a leak.

Usage: c_proxy_test.py SOURCE_DIR BINARY_DIR
Exit 77: skipped, because libevent, libcurl or the programs are missing; with REQUIRE_C_PROXY set that is a failure.
"""
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import c_proxy_fleet
import c_proxy_hostile
from c_proxy_fleet import BINARY, PROGRAM, SOURCE, WORK, Fleet, Recorder, eventually, events, raw_request

LONG = "Returns within 30 days; frames carry a five-year warranty; batteries two years. " * 40


class Answers(unittest.TestCase):
    def test_an_answer_comes_as_the_engine_gave_it_and_its_usage_is_reported(self):
        with Fleet() as fleet:
            status, answer = fleet.complete(LONG, max_tokens=7)
            self.assertEqual((200, 7), (status, answer["usage"]["completion_tokens"]))
            fleet.settled()
            self.assertEqual((1, 7, answer["usage"]["prompt_tokens"]), tuple(
                fleet.counter(name) for name in ("requests_done", "output_tokens", "reported_prompt_tokens")))
            fleet.complete(LONG)
            fleet.settled()
            served = [engine.metric("vllm:prompt_tokens_total") for engine in fleet.engines]
            self.assertIn(0, served, "the second goes where the first went")
            self.assertGreater(fleet.counter("reported_cached_tokens"), 0)

    def test_a_stream_comes_piece_by_piece(self):
        with Fleet(engine_options=("--time-factor", "1")) as fleet:
            connection, answer = fleet.stream(tokens=40)
            self.addCleanup(connection.close)
            self.assertEqual("text/event-stream", answer.getheader("content-type").split(";")[0])
            first = answer.readline()
            self.assertTrue(first.startswith(b"data: "))
            # The engine is still at it, and pickd knows of the first token.
            self.assertEqual(1, sum(engine.metric("vllm:num_requests_running") for engine in fleet.engines))
            eventually(lambda: fleet.counter("reports") == 1)
            rest = events(first + answer.read())
            self.assertEqual("[DONE]", rest[-1])
            self.assertEqual(40, json.loads(rest[-2])["usage"]["completion_tokens"])
            fleet.settled()
            self.assertEqual((2, 1, 40), tuple(
                fleet.counter(name) for name in ("reports", "requests_done", "output_tokens")))

    def test_a_long_stream_is_told_of_while_it_goes_on(self):
        with Fleet(engine_options=("--time-factor", "0.1")) as fleet:
            connection, _ = fleet.stream(tokens=4000)
            eventually(lambda: fleet.counter("reports") > 1)
            self.assertEqual((0, 1), (fleet.counter("requests_done"), fleet.told("status")["reservations"]))
            connection.close()
            fleet.settled()

    def test_several_prompts_are_one_request_of_which_the_longest_is_matched(self):
        with Fleet() as fleet:
            # enginesim takes one prompt and says so, which the caller sees as it is.
            status, answer = fleet.complete(["one", LONG + "longest", LONG], n=2)
            self.assertEqual(400, status, answer)
            fleet.settled()
            self.assertEqual(1, fleet.counter("picks"))
            for prompt, blocks in (("one" + LONG, 0), (LONG + "longest", len(LONG) // 256)):
                before = fleet.counter("match_blocks")
                self.assertEqual(200, fleet.complete(prompt, n=1)[0])
                fleet.settled()
                self.assertGreaterEqual(fleet.counter("match_blocks") - before, blocks, "never joined")

    def test_what_is_no_prompt_and_other_paths_reach_an_engine_too(self):
        with Fleet(models="[]") as fleet:
            for method, path, body, status in (("GET", "/v1/models", None, 200), ("GET", "/nowhere?x=1", None, 404),
                                               ("POST", "/v1/completions", '{"prompt": [', 400),
                                               ("POST", "/v1/completions", '{"model": "other", "prompt": "a"}', 404)):
                answer, text = fleet.proxy.ask(method, path, body)
                direct, said = fleet.engines[0].ask(method, path, body)
                self.assertEqual((status, direct.status), (answer.status, status), path)
                if path != "/v1/models":  # which tells when
                    self.assertEqual(said, text)
            self.assertEqual(fleet.engines[0].ask("HEAD", "/v1/models")[0].status,
                             fleet.proxy.ask("HEAD", "/v1/models")[0].status)
            self.assertEqual(200, fleet.proxy.ask("GET", "/healthz")[0].status)
            fleet.settled()
            self.assertEqual(0, fleet.counter("requests_failed"))

    def test_a_body_in_chunks_and_one_that_waits_to_be_asked_for(self):
        with Fleet() as fleet:
            body = json.dumps({"model": "demo", "prompt": LONG, "max_tokens": 2}).encode()
            connection = http.client.HTTPConnection("127.0.0.1", fleet.proxy.port, timeout=120)
            connection.request("POST", "/v1/completions", iter([body[:10], body[10:]]), encode_chunked=True,
                               headers={"transfer-encoding": "chunked"})
            self.assertEqual(200, connection.getresponse().status)
            connection.close()
            caller = socket.create_connection(("127.0.0.1", fleet.proxy.port), timeout=120)
            caller.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
                           b"content-length: %d\r\n\r\n" % len(body))
            self.assertTrue(caller.recv(100).startswith(b"HTTP/1.1 100 "))
            caller.sendall(body)
            self.assertTrue(caller.recv(100).startswith(b"HTTP/1.1 200 "))
            caller.close()

    def test_requests_on_one_connection_also_sent_ahead(self):
        with Fleet() as fleet:
            connection = http.client.HTTPConnection("127.0.0.1", fleet.proxy.port, timeout=120)
            for tokens in (3, 5):
                _, answer = fleet.stream(tokens=tokens, connection=connection)
                self.assertEqual(tokens, json.loads(events(answer.read())[-2])["usage"]["completion_tokens"])
            connection.close()
            body = b'{"model": "demo", "prompt": "Hello", "max_tokens": 3}'
            one = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n%s"
            caller = socket.create_connection(("127.0.0.1", fleet.proxy.port), timeout=120)
            caller.sendall(one % (len(body), b"", body) + one % (len(body), b"connection: close\r\n", body))
            came = b"".join(iter(lambda: caller.recv(65536), b""))
            self.assertEqual(2, came.count(b"HTTP/1.1 200 OK"))
            caller.close()
            fleet.settled()
            self.assertEqual(4, fleet.counter("requests_done"))

    def test_a_caller_that_reads_slowly_makes_the_engine_wait_and_gets_everything(self):
        tokens = 100000  # 18 MB of events
        with Fleet(engines=1, engine_options=("--time-factor", "1000", "--blocks", "20000")) as fleet:
            connection, answer = fleet.stream(tokens=tokens)
            grown, before = 0, fleet.resident_bytes()
            while grown == 0 or fleet.engines[0].metric("vllm:generation_tokens_total") < tokens:
                grown = max(grown, fleet.resident_bytes() - before)
                time.sleep(0.05)
            self.assertLess(grown, 16 << 20)  # a MiB unsent, and what AddressSanitizer adds
            came = events(answer.read())
            connection.close()
            self.assertEqual((tokens + 2, "[DONE]"), (len(came), came[-1]))
            fleet.settled()
            self.assertEqual(1, fleet.counter("requests_done"))

    def test_many_at_once_are_each_answered_and_accounted_for(self):
        with Fleet(engine_options=("--time-factor", "100")) as fleet:
            def one(at):
                if at % 2:
                    return fleet.complete(f"{at % 5} " + LONG)[0]
                connection, answer = fleet.stream(f"{at % 5} " + LONG)
                came = len(events(answer.read()))
                connection.close()
                return came

            with ThreadPoolExecutor(40) as callers:
                found = list(callers.map(one, range(400)))
            self.assertEqual({200}, set(found[1::2]))
            self.assertEqual({10}, set(found[::2]))  # eight tokens, usage, [DONE]
            fleet.settled()
            self.assertEqual((400, 400, 200 * 12, 0), tuple(fleet.counter(name) for name in (
                "picks", "requests_done", "output_tokens", "reports_unknown")))


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
STAGES = """  - {name: prefill, address: "http://127.0.0.1:9100/", role: prefill, models: [demo]}
  - {name: encode, address: "127.0.0.1:9300", role: encode, models: [demo]}
"""


class Headers(unittest.TestCase):
    def test_the_engine_hears_who_computes_the_prompt_and_who_encodes_its_images(self):
        image = {"type": "image_url", "image_url": {"url": "https://images.example/cat.png"}}
        names = ("x-prefiller-host-port", "x-encoder-hosts-ports")
        with Fleet(recorder=Recorder(), models="[demo], role: decode", settings=SPLIT, roles=STAGES,
                   profile=None) as fleet:
            for content, encode in (([{"type": "text", "text": LONG}, image], "127.0.0.1:9300"), (LONG, None)):
                body = {"model": "demo", "messages": [{"role": "user", "content": content}]}
                answer, _ = fleet.proxy.ask("POST", "/v1/chat/completions", body, dict.fromkeys(names, "evil:1"))
                self.assertEqual(200, answer.status)
                asked = fleet.engines[0].asked[-1]
                self.assertEqual(("127.0.0.1:9100", encode), tuple(asked.get(name) for name in names))
            fleet.settled()

    def test_what_is_between_two_neighbours_does_not_go_on_either_way(self):
        with Fleet(recorder=Recorder(("connection", "X-Mine ,x-too"), ("x-mine", "1"), ("x-too", "1"),
                                      ("x-kept", "1"))) as fleet:
            answer, _ = fleet.proxy.ask("POST", "/v1/completions", {"model": "demo", "prompt": "Hello"}, {
                "connection": "X-Hop, keep-alive", "x-hop": "1", "keep-alive": "5", "te": "trailers", "x-kept": "1",
                "authorization": "Bearer t"})
            self.assertEqual({"x-kept": "1", "authorization": "Bearer t"}, {
                name: value for name, value in fleet.engines[0].asked[0].items()
                if name in ("connection", "x-hop", "keep-alive", "te", "x-kept", "authorization")})
            self.assertEqual((None, None, "1", "2"), tuple(
                answer.getheader(name) for name in ("x-mine", "x-too", "x-kept", "content-length")))


class CallersThatGo(unittest.TestCase):
    def gone(self, leave, silent):
        """A caller goes; the engine stops, and nothing stays reserved."""
        slow = ("--time-factor", "1", "--prefill-seconds", "0.05") if silent else ("--time-factor", "1",)
        with Fleet(engine_options=slow) as fleet:
            caller = raw_request(fleet, 100000, prompt=LONG)
            eventually(lambda: sum(engine.metric("vllm:num_requests_running") for engine in fleet.engines) == 1)
            if not silent:
                caller.recv(100)
            leave(caller)
            eventually(lambda: sum(engine.metric("vllm:num_requests_running") for engine in fleet.engines) == 0)
            fleet.settled()
            self.assertEqual((0, 0), (fleet.counter("requests_done"), fleet.counter("requests_failed")))
            self.assertEqual(200, fleet.complete("another", max_tokens=1)[0] if not silent else 200)

    @staticmethod
    def reset(caller):
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.close()

    def test_one_that_closes_in_the_middle_of_a_stream(self):
        self.gone(socket.socket.close, silent=False)

    def test_one_that_closes_before_the_first_token(self):
        self.gone(socket.socket.close, silent=True)

    def test_one_that_resets_its_connection_before_the_first_token(self):
        self.gone(self.reset, silent=True)

    def test_one_that_goes_while_the_daemon_does_not_answer(self):
        with Fleet() as fleet:
            fleet.complete()
            fleet.daemon.send_signal(signal.SIGSTOP)
            callers = [raw_request(fleet, 5) for _ in range(5)]
            for caller in callers:
                caller.close()
            time.sleep(0.1)  # most go while their pick waits
            fleet.daemon.send_signal(signal.SIGCONT)
            self.assertEqual(200, fleet.complete()[0])
            fleet.settled()


class EnginesThatFail(unittest.TestCase):
    def test_one_that_is_not_there_is_replaced_by_a_fallback_and_avoided(self):
        with Fleet() as fleet:
            fleet.complete(LONG)
            fleet.settled()
            holder = [engine.metric("vllm:prompt_tokens_total") > 0 for engine in fleet.engines].index(True)
            fleet.engines[holder].kill()
            status, answer = fleet.complete(LONG)
            self.assertEqual((200, 4), (status, answer["usage"]["completion_tokens"]))
            fleet.settled()
            self.assertEqual((1, 2), (fleet.counter("requests_fallback"), fleet.counter("requests_done")))
            states = {e["name"]: e["state"] for e in fleet.told("endpoints")["endpoints"]}
            self.assertNotEqual("ready", states[f"e{holder}"])
            self.assertEqual(200, fleet.complete(LONG)[0])
            self.assertEqual(1, fleet.counter("requests_fallback"))

    def test_one_that_dies_before_the_first_byte_costs_the_caller_nothing(self):
        with Fleet(engine_options=("--time-factor", "1", "--prefill-seconds", "0.002")) as fleet:
            with ThreadPoolExecutor(1) as callers:
                asked = callers.submit(fleet.complete, LONG)  # prefill takes 1.6 s
                eventually(lambda: sum(engine.metric("vllm:num_requests_running") for engine in fleet.engines) == 1)
                at = [engine.metric("vllm:num_requests_running") for engine in fleet.engines].index(1)
                fleet.engines[at].kill()
                self.assertEqual(200, asked.result()[0])
            fleet.settled()
            self.assertEqual((1, 1, 0), tuple(fleet.counter(name) for name in (
                "requests_fallback", "requests_done", "requests_failed")))

    def test_one_that_dies_in_the_middle_is_seen_by_the_caller_and_reported(self):
        with Fleet(engine_options=("--time-factor", "1",)) as fleet:
            connection, answer = fleet.stream(tokens=100000)
            self.assertTrue(answer.readline().startswith(b"data: "))
            at = [engine.metric("vllm:num_requests_running") for engine in fleet.engines].index(1)
            fleet.engines[at].kill()
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                answer.read()
            connection.close()
            fleet.settled()
            self.assertEqual((1, 0), (fleet.counter("requests_failed"), fleet.counter("requests_done")))
            self.assertEqual(200, fleet.complete("again", max_tokens=1)[0])

    def test_where_none_can_be_reached_the_caller_sees_503(self):
        with Fleet() as fleet:
            for engine in fleet.engines:
                engine.kill()
            status, answer = fleet.complete()
            self.assertEqual((503, "ServiceUnavailable"), (status, answer["error"]["type"]))
            fleet.settled()
            self.assertEqual((1, 1), (fleet.counter("requests_fallback"), fleet.counter("requests_failed")))

    def test_no_more_are_tried_than_was_said(self):
        with Fleet(proxy_options=("--retries", "0")) as fleet:
            for engine in fleet.engines:
                engine.kill()
            self.assertEqual(503, fleet.complete()[0])
            self.assertEqual(0, fleet.counter("requests_fallback"))


class Refusals(unittest.TestCase):
    def refused(self, fleet, status, reason, **members):
        body = {"model": "demo", "prompt": "Hello", "max_tokens": 2, **members}
        answer, text = fleet.proxy.ask("POST", "/v1/completions", body)
        self.assertEqual((status, reason), (answer.status, answer.getheader("x-llm-d-request-dropped-reason")), text)
        self.assertEqual(status, json.loads(text)["error"]["code"])

    def test_a_model_that_nobody_serves_is_404(self):
        with Fleet(models="[other]") as fleet:
            self.refused(fleet, 404, None)

    def test_a_user_over_a_limit_is_429_until_there_is_room(self):
        with Fleet(engine_options=("--time-factor", "1"), settings="reservations: {per_uid_max: 1}") as fleet:
            connection, answer = fleet.stream(tokens=30)
            self.addCleanup(connection.close)
            self.refused(fleet, 429, "rejected-saturated")
            answer.read()
            fleet.settled()
            self.assertEqual(200, fleet.complete()[0])

    def test_no_endpoint_is_503(self):
        with Fleet() as fleet:
            for endpoint in ("e0", "e1"):
                self.drain(fleet, endpoint)
            self.refused(fleet, 503, "rejected-no-endpoints")

    @staticmethod
    def drain(fleet, name):
        """By libpickd: pickctl has no command for it."""
        from ctypes import CDLL, byref, c_char_p, c_int, c_void_p
        os.environ["PICKD_SOCKET"] = fleet.socket
        library, client = CDLL(os.path.join(BINARY, "lib/libpickd.so")), c_void_p()
        library.pickd_open.argtypes = [c_void_p, c_void_p]
        library.pickd_endpoint_drain.argtypes = [c_void_p, c_char_p, c_int]
        library.pickd_close.argtypes = [c_void_p]
        assert library.pickd_open(None, byref(client)) == 0
        assert library.pickd_endpoint_drain(client, name.encode(), 1) == 0
        library.pickd_close(client)
        del os.environ["PICKD_SOCKET"]

    def test_a_body_over_the_limit_is_413(self):
        with Fleet(proxy_options=("--body-max-bytes", "1000")) as fleet:
            answer, _ = fleet.proxy.ask("POST", "/v1/completions", {"model": "demo", "prompt": "x" * 2000})
            self.assertEqual(413, answer.status)
            self.assertEqual(200, fleet.complete()[0])

    def test_a_session_that_is_too_long_is_no_reason_to_refuse(self):
        with Fleet() as fleet:
            answer, _ = fleet.proxy.ask("POST", "/v1/completions", {"model": "demo", "prompt": "a", "max_tokens": 1},
                                        {"x-session-id": "s" * 1000, "x-slo-ttft-ms": "y" * 300})
            self.assertEqual(200, answer.status)


class DaemonAndProxy(unittest.TestCase):
    def test_requests_go_on_without_the_daemon_and_come_back_to_it(self):
        with Fleet() as fleet:
            self.assertEqual(200, fleet.complete()[0])
            fleet.settled()  # a report that the daemon has not applied dies with it
            fleet.daemon.kill()
            fleet.daemon.wait()
            for _ in range(5):
                self.assertEqual(200, fleet.complete(LONG)[0])
            fleet.start_daemon()
            eventually(lambda: os.path.exists(fleet.socket))
            eventually(lambda: fleet.complete()[0] == 200 and fleet.counter("picks") > 0)
            fleet.settled()

    def test_sigterm_lets_what_is_under_way_end(self):
        with Fleet(engine_options=("--time-factor", "1",)) as fleet:
            connection, answer = fleet.stream(tokens=100)
            self.addCleanup(connection.close)
            answer.readline()
            fleet.proxy.process.send_signal(signal.SIGTERM)
            eventually(lambda: fleet.proxy.ask("GET", "/healthz")[0].status == 503)
            self.assertEqual(503, fleet.complete()[0])
            self.assertEqual("[DONE]", events(answer.read())[-1])
            self.assertEqual(0, fleet.proxy.process.wait(timeout=60))

    def test_a_second_signal_ends_it_at_once_and_releases_what_was_reserved(self):
        with Fleet(engine_options=("--time-factor", "1",)) as fleet:
            connection, answer = fleet.stream(tokens=100000)
            self.addCleanup(connection.close)
            answer.readline()
            for _ in range(2):
                fleet.proxy.process.send_signal(signal.SIGTERM)
                time.sleep(0.2)
            self.assertEqual(0, fleet.proxy.process.wait(timeout=60))
            fleet.settled()

    def test_options_that_are_wrong_are_told(self):
        for options, words in ((["--listen", "here"], "wants an address"), (["--retries", "x"], "a number"),
                               (["--nonsense"], "usage"), (["more"], "usage")):
            done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, check=False,
                                  env={**os.environ, "PICKD_SOCKET": "/nonexistent"}, timeout=60)
            self.assertIn(words, done.stderr)
            self.assertNotEqual(0, done.returncode)


class Readme(unittest.TestCase):
    def test_its_commands_work(self):
        with open(os.path.join(SOURCE, "gateways/c-proxy/README.md"), encoding="utf-8") as file:
            commands, = re.findall(r"```sh\n(.*?)```", file.read(), re.DOTALL)
        with socket.socket() as a, socket.socket() as b, socket.socket() as c:
            for port, probe in (("8101", a), ("8102", b), ("8080", c)):
                probe.bind(("127.0.0.1", 0))
                commands = commands.replace(port, str(probe.getsockname()[1]))
        done = subprocess.run(["bash", "-euc", "trap 'kill $(jobs -p)' EXIT\n" + commands], cwd=WORK, text=True,
                              capture_output=True, timeout=300, check=False,
                              env={key: value for key, value in os.environ.items() if not key.startswith("PICKD_")})
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('"object":"text_completion"', done.stdout)
        self.assertIn("data: [DONE]", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^engine-2 +.*ready")


def load_tests(loader, tests, _):
    tests.addTests(loader.loadTestsFromModule(c_proxy_hostile))
    return tests


def main():
    why = c_proxy_fleet.missing()
    if why:
        print("skipped: " + why)
        return 1 if os.environ.get("REQUIRE_C_PROXY") else 77
    c_proxy_fleet.build("-O1 -g -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined")
    return 0 if unittest.main(argv=[sys.argv[0], *sys.argv[3:]], exit=False, verbosity=2).result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
