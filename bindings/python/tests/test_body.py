"""Bodies into requests, answers into reports, and both with a real daemon."""
import json
import unittest

import pickd
from daemon import Daemon
from pickd import ReportKind, body

SYSTEM = "Returns within 30 days; frames carry a five-year warranty; batteries two years. " * 40
TURN = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Returns?"}]
SAID = "Within 30 days, if the frame has no scratch. " * 30
STREAM = "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in (
    {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"choices": [{"index": 0, "delta": {"content": SAID}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 812, "completion_tokens": 5,
                              "prompt_tokens_details": {"cached_tokens": 64}}})) + "data: [DONE]\r\n\r\n"
EVENTS = {"content-type": "text/event-stream"}


def chat(messages, **more):
    return json.dumps({"model": "m", "messages": messages, **more}).encode()


class BodyTest(unittest.TestCase):
    def setUp(self):
        self.reader = body.Reader()

    def test_a_body_tells_what_a_request_needs(self):
        info = self.reader.read("/v1/chat/completions?x=1", chat(TURN, stream=True, n=2, max_tokens=50),
                                [("X-Session-Id", "s"), ("x-request-id", "r"), (b"other", b"\xff")])
        self.assertEqual((body.Api.CHAT, 0, "", True, 2, 50, 1, "m", "s", "r"),
                         (info.api, info.status, info.problem, info.stream, info.n, info.max_tokens, info.prompt_count,
                          info.model, info.session_id, info.request_id))
        request = self.reader.request()
        self.assertEqual((b"m", b"s", b"r", True), (request.model, request.session_id, request.request_id, request.stream))
        self.assertIn(SYSTEM.encode(), request.text)

    def test_how_a_body_is_cut_does_not_matter_and_the_request_lives_on(self):
        self.reader.read("/v1/chat/completions", chat(TURN))
        whole = self.reader.request()
        self.reader.begin("/v1/chat/completions", body_bytes=10)
        data = chat(TURN)
        for at in range(0, len(data), 7):
            self.assertTrue(self.reader.add(memoryview(data)[at:at + 7]))
        self.reader.end()
        self.assertEqual(whole, self.reader.request())

    def test_each_of_several_prompts_can_be_asked_for(self):
        data = json.dumps({"model": "m", "prompt": ["short", "a longer prompt than that"], "n": 3}).encode()
        info = self.reader.read("/v1/completions", data)
        self.assertEqual((2, 3), (info.prompt_count, info.n))
        texts = [self.reader.request(at).text for at in range(2)]
        self.assertTrue(texts[0].endswith(b"short") and texts[1].endswith(b"a longer prompt than that"))
        self.assertEqual(texts[1], self.reader.request().text)
        with self.assertRaises(pickd.InvalidError):
            self.reader.request(2)

    def test_token_ids_stay_ids(self):
        self.reader.read("/v1/completions", json.dumps({"model": "m", "prompt": [1, 2, 70000]}).encode())
        request = self.reader.request()
        self.assertEqual(([1, 2, 70000], b"", False), (list(request.token_ids), request.text, request.media))

    def test_an_image_stands_in_the_prompt_by_what_names_it(self):
        def read(name):
            parts = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": "http://x/" + name}}]
            self.assertEqual(1, self.reader.read("/v1/chat/completions", chat([{"role": "user", "content": parts}])).media_count)
            return self.reader.request()

        self.assertEqual(read("cat.png"), read("cat.png"))
        self.assertTrue(read("cat.png").media)
        self.assertNotEqual(read("cat.png").text, read("dog.png").text)
        self.assertGreaterEqual(read("cat.png").prompt_tokens, 576)

    def test_what_cannot_be_read_is_a_request_without_a_prompt_and_counted(self):
        counters = body.Counters()
        reader = body.Reader(counters=counters, body_bytes_max=1000)
        for data, path in ((b'{"messages": [{"role"', "/v1/chat/completions"), (b"", "/v1/completions"),
                           (chat(TURN), "/v1/chat/completions"), (b"{}", "/elsewhere"), (b"\xff", "/v1/messages")):
            info = reader.read(path, data)
            self.assertLess(info.status, 0)
            self.assertNotEqual("", info.problem)
            self.assertEqual((b"", 0), (reader.request().text, len(reader.request().token_ids)))
        values = counters.values()
        self.assertGreater(len(values), 5)
        self.assertGreater(sum(values.values()), 5)

    def test_an_answer_tells_first_token_and_usage_wherever_it_is_cut(self):
        ticket = pickd.Ticket(1, 2)
        for step in (1, 7, 100, 10000):
            answer = body.Answer()
            answer.begin(body.Api.CHAT, 200, EVENTS)
            data, kinds, news = STREAM.encode(), [], body.News(0)
            for at in range(0, len(data), step):
                came = answer.add(data[at:at + step])
                news |= came
                if came & body.News.FIRST_TOKEN:
                    kinds.append(answer.report(ticket).kind)
            self.assertEqual("", answer.end())
            self.assertEqual([ReportKind.FIRST_TOKEN], kinds)
            self.assertEqual(body.News(15), news)
            self.assertEqual(pickd.Report(ticket, ReportKind.DONE, 812, 64, 5), answer.report(ticket))

    def test_a_stream_that_breaks_off_has_failed(self):
        answer = body.Answer()
        answer.begin(body.Api.CHAT, 200, EVENTS)
        answer.add(STREAM[:400].encode())
        self.assertNotEqual("", answer.end())
        self.assertEqual(ReportKind.FAILED, answer.report(pickd.Ticket(1, 2)).kind)
        with self.assertRaises(pickd.InvalidError):
            answer.add(b"more")

    def test_the_next_turn_of_a_conversation_meets_the_answer_too(self):
        daemon = Daemon()
        self.addCleanup(daemon.close)
        with pickd.Client(daemon.socket) as client:
            self.reader.read("/v1/chat/completions", chat(TURN))
            first = client.pick(self.reader.request(), timeout=60)
            answer = body.Answer()
            answer.begin(body.Api.CHAT, 200, EVENTS, keep_text=True)
            answer.add(STREAM.encode())
            answer.end()
            client.report(answer.report(first.ticket))
            self.assertTrue(self.reader.append(answer))
            told = self.reader.request()
            told.subset = [first.name]
            client.report(pickd.Report(client.pick(told, timeout=60).ticket, ReportKind.CANCELLED))
            later = [*TURN, {"role": "assistant", "content": SAID}, {"role": "user", "content": "And frames?"}]
            self.reader.read("/v1/chat/completions", chat(later, temperature=1))
            again = client.pick(self.reader.request(), timeout=60)
            self.assertEqual(first.name, again.name)
            self.assertGreaterEqual(again.endpoints[0].match_tokens, (len(SYSTEM) + len(SAID)) // 256 * 64)


if __name__ == "__main__":
    unittest.main()
