#!/usr/bin/env python3
"""Speaks HTTP to a real enginesim: streaming, usage, prefix hits, metrics, errors, aborts.

Called with <source dir> <binary dir>; 77 = skipped.
"""
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import unittest

BINARY = os.path.join(sys.argv[2], "bin", "enginesim") if len(sys.argv) > 2 else ""


class Engine:
    """One enginesim; `with Engine("--option") as engine`."""

    def __init__(self, *options):
        self.process = subprocess.Popen([BINARY, "--port", "0", *options],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"listening on (\d+)\n", line).group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None):
        connection = self.connect()
        if isinstance(body, dict):
            body = json.dumps(body)
        connection.request(method, path, body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def complete(self, prompt, **members):
        status, text = self.ask("POST", "/v1/completions", {"prompt": prompt, **members})
        assert status == 200, text
        return json.loads(text)

    def metrics(self):
        """The values of the page by metric name; of several series of a name the last one."""
        page = self.ask("GET", "/metrics")[1]
        assert page.endswith("\n")
        return {line.split("{")[0].split(" ")[0]: float(line.rsplit(" ", 1)[1])
                for line in page.splitlines() if not line.startswith("#")}

    def wait_for(self, condition):
        """Asks for for metrics until the condition holds; the time-out of tests ends a vain wait."""
        while True:
            metrics = self.metrics()
            if condition(metrics):
                return metrics


def events_of(answer):
    """The server-sent events of a streamed answer."""
    for line in answer:
        line = line.strip()
        if line:
            assert line.startswith(b"data: "), line
            yield line[len(b"data: "):].decode()


class EngineSim(unittest.TestCase):
    def test_answers_as_a_whole_with_usage(self):
        with Engine("--time-factor", "10") as engine:
            answer = engine.complete("x" * 400, max_tokens=8, ignore_eos=True)
            self.assertEqual(answer["object"], "text_completion")
            self.assertEqual(answer["model"], "demo")
            self.assertEqual(len(answer["choices"][0]["text"]), 32)
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")
            self.assertEqual(answer["usage"], {"prompt_tokens": 100, "completion_tokens": 8,
                                               "total_tokens": 108,
                                               "prompt_tokens_details": {"cached_tokens": 0}})

    def test_streams_a_token_an_event_and_then_the_usage(self):
        with Engine("--time-factor", "10") as engine:
            connection = engine.connect()
            body = {"model": "demo", "prompt": "x" * 400, "max_tokens": 5, "ignore_eos": True,
                    "stream": True, "stream_options": {"include_usage": True}}
            texts = []
            for _ in range(2):  # twice on one connection: it is kept alive
                connection.request("POST", "/v1/completions", json.dumps(body))
                answer = connection.getresponse()
                self.assertEqual(answer.getheader("Content-Type"), "text/event-stream")
                events = list(events_of(answer))
                self.assertEqual(events[-1], "[DONE]")
                chunks = [json.loads(event) for event in events[:-1]]
                self.assertEqual(len(chunks), 6)
                self.assertEqual([chunk["choices"][0]["finish_reason"] for chunk in chunks[:5]],
                                 [None] * 4 + ["length"])
                self.assertEqual(chunks[5]["choices"], [])
                texts.append("".join(chunk["choices"][0]["text"] for chunk in chunks[:5]))
            self.assertEqual(chunks[5]["usage"]["prompt_tokens_details"]["cached_tokens"], 96)
            self.assertEqual(texts[0], texts[1])
            connection.close()

    def test_finds_the_answer_in_the_next_turn(self):
        with Engine("--time-factor", "10") as engine:
            first = engine.complete("x" * 256, max_tokens=33, ignore_eos=True)
            turn = "x" * 256 + first["choices"][0]["text"] + "y" * 64
            second = engine.complete(turn, max_tokens=1)
            self.assertEqual(second["usage"]["prompt_tokens_details"]["cached_tokens"], 96)
            salted = engine.complete(turn, max_tokens=1, cache_salt="tenant")
            self.assertEqual(salted["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
            self.assertEqual(engine.ask("POST", "/reset_prefix_cache")[0], 200)
            third = engine.complete(turn, max_tokens=1)
            self.assertEqual(third["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_takes_token_ids(self):
        with Engine("--time-factor", "10") as engine:
            for cached in (0, 32):
                answer = engine.complete(list(range(40)), max_tokens=1)
                self.assertEqual(answer["usage"]["prompt_tokens"], 40)
                self.assertEqual(answer["usage"]["prompt_tokens_details"]["cached_tokens"], cached)

    def test_ends_answers_by_itself_unless_told_not_to(self):
        with Engine("--time-factor", "100", "--mean-output-tokens", "3") as engine:
            reasons = set()
            for prompt in range(20):
                answer = engine.complete(f"prompt {prompt}", max_tokens=4)
                reason = answer["choices"][0]["finish_reason"]
                reasons.add(reason)
                if answer["usage"]["completion_tokens"] < 4:
                    self.assertEqual(reason, "stop")
            self.assertEqual(reasons, {"stop", "length"})

    def test_counts_in_its_metrics_under_vllms_names(self):
        with Engine("--time-factor", "10", "--blocks", "1000", "--adapters", "sql,chat",
                    "--max-loras", "2") as engine:
            engine.complete("x" * 400, max_tokens=8, ignore_eos=True)
            engine.complete("x" * 400, max_tokens=8, ignore_eos=True)
            metrics = engine.metrics()
            for name, value in {"num_requests_running": 0, "num_requests_waiting": 0,
                                "kv_cache_usage_perc": 0,
                                "prefix_cache_queries_total": 200, "prefix_cache_hits_total": 96,
                                "prompt_tokens_total": 200, "generation_tokens_total": 16,
                                "time_to_first_token_seconds_count": 2,
                                "inter_token_latency_seconds_count": 14}.items():
                self.assertEqual(metrics["vllm:" + name], value, name)
            self.assertEqual(metrics["vllm:gpu_cache_usage_perc"],
                             metrics["vllm:kv_cache_usage_perc"])
            page = engine.ask("GET", "/metrics")[1]
            self.assertIn('block_size="16"', page)
            self.assertIn('num_gpu_blocks="1000"', page)
            self.assertIn('vllm:lora_requests_info{max_lora="2",running_lora_adapters="",'
                          'waiting_lora_adapters=""}', page)
            self.assertIn("process_start_time_seconds ", page)

    def test_shows_adapters_while_they_run_and_frees_an_aborted_request_at_once(self):
        with Engine("--adapters", "sql") as engine:
            connection = engine.connect()
            connection.request("POST", "/v1/completions", json.dumps(
                {"model": "sql", "prompt": "x" * 4000, "max_tokens": 100000, "ignore_eos": True,
                 "stream": True}))
            answer = connection.getresponse()
            next(events_of(answer))
            metrics = engine.metrics()
            self.assertEqual(metrics["vllm:num_requests_running"], 1)
            self.assertGreater(metrics["vllm:kv_cache_usage_perc"], 0)
            self.assertIn('running_lora_adapters="sql"', engine.ask("GET", "/metrics")[1])
            answer.close()
            connection.close()
            metrics = engine.wait_for(lambda page: page["vllm:num_requests_running"] == 0)
            self.assertEqual(metrics["vllm:kv_cache_usage_perc"], 0)
            self.assertEqual(metrics["vllm:request_success_total"], 1)  # the last series: aborted

    def test_says_what_is_wrong(self):
        with Engine("--blocks", "10") as engine:
            for body, status, word in [
                    (b"no json", 400, "JSON"),
                    ({}, 400, "prompt"),
                    ({"prompt": ""}, 400, "prompt"),
                    ({"prompt": ["a"]}, 400, "token ids"),
                    ({"prompt": [-1]}, 400, "token ids"),
                    ({"prompt": "x", "max_tokens": 0}, 400, "max_tokens"),
                    ({"prompt": "x", "max_tokens": "many"}, 400, "max_tokens"),
                    ({"prompt": "x", "stream": 1}, 400, "stream"),
                    ({"prompt": "x" * 640, "max_tokens": 1}, 400, "maximum context length is 160"),
                    ({"prompt": "x", "model": "other"}, 404, "other")]:
                got, text = engine.ask("POST", "/v1/completions", body)
                self.assertEqual(got, status, text)
                self.assertIn(word, json.loads(text)["error"]["message"])
            self.assertEqual(engine.ask("GET", "/nowhere")[0], 404)
            self.assertEqual(engine.ask("GET", "/v1/completions")[0], 405)
            self.assertEqual(engine.ask("GET", "/health")[0], 200)
            models = json.loads(engine.ask("GET", "/v1/models")[1])["data"]
            self.assertEqual([(model["id"], model["max_model_len"]) for model in models],
                             [("demo", 160)])

    def test_does_not_compute_between_steps(self):
        """A busy loop would burn the two seconds that these steps take."""
        with Engine("--step-seconds", "0.2") as engine:
            answer = engine.complete("x" * 400, max_tokens=10, ignore_eos=True)
            self.assertEqual(answer["usage"]["completion_tokens"], 10)
            with open(f"/proc/{engine.process.pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            ticks = int(fields[11]) + int(fields[12])
            self.assertLess(ticks / os.sysconf("SC_CLK_TCK"), 0.5)  # of two seconds of steps

    def test_ends_on_a_signal(self):
        with Engine() as engine:
            engine.process.send_signal(signal.SIGTERM)
            self.assertEqual(engine.process.wait(), 0)


if __name__ == "__main__":
    if not os.path.exists(BINARY):
        print("skipped: no", BINARY)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
