"""Callers and engines that mean harm, or frame their messages so that two readers would cut them in two ways; a part of
c_proxy_test.py."""
import socket
import threading
import unittest

from c_proxy_fleet import Fleet, Recorder

BODY = b'{"model": "demo", "prompt": "Hello", "max_tokens": 4}'


class Engine:
    """An engine that answers each connection with these bytes, whatever it is asked, and closes it."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                came = b""
                while not came.endswith(BODY):
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    came += piece
                else:
                    self.asked += 1
                    connection.sendall(self.answer)

    def kill(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def ask(fleet, head, body=BODY):
    """Sends these bytes, closes the sending half, and gives all that comes back."""
    with socket.create_connection(("127.0.0.1", fleet.proxy.port), timeout=120) as caller:
        caller.sendall(head + b"\r\n" + body)
        came = b""
        while piece := caller.recv(65536):
            came += piece
        return came


def request(*headers, target=b"/v1/completions", body=BODY):
    lines = [b"POST " + target + b" HTTP/1.1", b"host: x", b"connection: close", *headers]
    if not any(header.lower().startswith((b"content-length", b"transfer-encoding")) for header in headers):
        lines.append(b"content-length: %d" % len(body))
    return b"".join(line + b"\r\n" for line in lines)


class HostileCallers(unittest.TestCase):
    def test_one_that_frames_its_request_in_two_ways_is_refused_and_no_engine_hears_of_it(self):
        size = b"%d" % len(BODY)
        with Fleet(recorder=Recorder()) as fleet:
            for headers in ((b"content-length: " + size, b"transfer-encoding : chunked"),
                            (b"content-length: " + size, b"content-length : 3"),
                            (b"content-length: 3", b"content-length: " + size),
                            (b"content-length: +" + size,),
                            (b"content-length: " + size, b"transfer-encoding: gzip"),
                            (b"x-prefiller-host-port : evil:1",), (b"host : evil",), (b": empty",),
                            (b"x-mine: a\x01b",), (b"x(mine): 1",)):
                came = ask(fleet, request(*headers))
                self.assertTrue(came.startswith(b"HTTP/1.1 400 "), (headers, came))
                self.assertEqual(1, came.count(b"HTTP/1.1"), "nothing after it was taken for a request")
            self.assertEqual([], fleet.engines[0].asked)

    def test_a_target_that_nobody_could_ask_for_takes_no_engine_out(self):
        with Fleet(recorder=Recorder()) as fleet:
            for target in (b"/v1/completions?\x01", b"/v1/\xc3\xa4", b"/\x7f", b"*", b"v1/completions", b"ftp://x/"):
                came = ask(fleet, request(target=target))
                self.assertTrue(came.startswith(b"HTTP/1.1 400 ") or not came, (target, came))
            self.assertEqual([], fleet.engines[0].asked)
            self.assertEqual(0, fleet.counter("requests_failed"))
            self.assertTrue(ask(fleet, request()).startswith(b"HTTP/1.1 200 "))
            self.assertTrue(ask(fleet, request(target=b"http://x/v1/completions")).startswith(b"HTTP/1.1 200 "))

    def test_what_a_picker_alone_may_set_does_not_reach_the_engine(self):
        names = ("x-prefiller-host-port", "x-encoder-hosts-ports", "x-kv-cache-source-host-port",
                 "X-Data-Parallel-Host-Port")
        with Fleet(recorder=Recorder()) as fleet:
            answer, _ = fleet.proxy.ask("POST", "/v1/completions", {"model": "demo", "prompt": "Hello"},
                                        {**dict.fromkeys(names, "evil:1"), "x-kept": "1"})
            self.assertEqual(200, answer.status)
            self.assertEqual(["x-kept"], [name for name in fleet.engines[0].asked[0] if name.startswith("x-")])

    def test_other_methods_reach_an_engine(self):
        with Fleet(models="[]") as fleet:
            for method in ("OPTIONS", "PATCH"):
                answer, _ = fleet.proxy.ask(method, "/v1/completions")
                self.assertEqual(fleet.engines[0].ask(method, "/v1/completions")[0].status, answer.status)


class HostileEngines(unittest.TestCase):
    def answer_to(self, answer):
        """What a caller sees of an engine that answers so."""
        engine = Engine(answer)
        with Fleet(recorder=engine) as fleet:
            came = ask(fleet, request())
            fleet.settled()
            failed = fleet.counter("requests_failed")
        self.assertGreater(engine.asked, 0)
        return came, failed

    def test_chunks_hold_where_a_length_stands_beside_them(self):
        came, _ = self.answer_to(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n"
                                 b"b\r\nhello world\r\n0\r\n\r\n")
        head, body = came.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"content-length", head.lower())
        self.assertIn(b"hello world", body)

    def test_an_answer_that_cannot_be_passed_on_is_502(self):
        for answer in (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\nhello",
                       b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello",
                       b"HTTP/1.1 200 OK\r\nx-mine: a\r\n b\r\ncontent-length: 2\r\n\r\n{}",
                       b"HTTP/1.1 200 OK\r\nx mine: a\r\ncontent-length: 2\r\n\r\n{}"):
            came, failed = self.answer_to(answer)
            self.assertTrue(came.startswith(b"HTTP/1.1 502 Bad Gateway\r\n"), came)
            self.assertEqual(1, failed, answer)

    def test_a_head_without_end_is_502_and_says_nothing_of_its_health(self):
        came, failed = self.answer_to(b"HTTP/1.1 200 OK\r\n" + b"x-mine: " + b"a" * 400_000 + b"\r\n\r\n")
        self.assertTrue(came.startswith(b"HTTP/1.1 502 "), came[:100])
        self.assertEqual(0, failed)

    def test_headers_that_one_named_for_its_connection_stay_behind(self):
        came, _ = self.answer_to(b"HTTP/1.1 200 OK\r\nx-secret: 1\r\nconnection: X-Secret\r\nconnection: close\r\n"
                                 b"content-length: 2\r\n\r\n{}")
        self.assertTrue(came.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertNotIn(b"x-secret", came.lower())

    def test_its_own_words_for_a_status_reach_the_caller(self):
        came, failed = self.answer_to(b"HTTP/1.1 429 Slow Down\r\ncontent-length: 2\r\n\r\n{}")
        self.assertTrue(came.startswith(b"HTTP/1.1 429 Slow Down\r\n"), came)
        self.assertEqual(0, failed)
