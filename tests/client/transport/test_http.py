import json

import httpx
import pytest

from noisescale.transport.upload.http import HttpServer
from noisescale_core.errors import TransportError
from stub_server import http_stub

SMALL = b'{"proto": 1, "run_id": "r", "first_seq": 1, "last_seq": 1, "crc32": 0, "run": {"seq": 1}}'
LARGE = SMALL[:-1] + b', "sent_at": "' + b"x" * 2000 + b'"}'


@pytest.fixture
def stub():
    with http_stub() as running:
        yield running


@pytest.fixture
def server(stub):
    opened = HttpServer(stub.url + "/", "ns_w_key", "noisescale/test")
    yield opened
    opened.close()


def test_a_batch_goes_to_its_stream_with_the_key(stub, server):
    answer = server.post_batch("stream-1", SMALL)

    path, headers = stub.requests[0]
    assert (answer.status, answer.acked_seq, answer.body["epoch"]) == (200, 1, "first")
    assert path == "/api/v1/streams/stream-1/batches"
    assert headers["Authorization"] == "Bearer ns_w_key"
    assert headers["Content-Type"] == "application/json"
    assert headers["User-Agent"] == "noisescale/test"
    assert stub.ledger.acked == {"stream-1": 1}


@pytest.mark.parametrize("body", [SMALL, LARGE], ids=["small", "large"])
def test_every_batch_is_compressed_so_that_a_damaged_one_is_refused(stub, server, body):
    """What gzip adds at the end is a checksum; without one a flipped bit may be another number."""
    server.post_batch("stream-1", body)

    assert stub.requests[0][1]["Content-Encoding"] == "gzip"
    assert int(stub.requests[0][1]["Content-Length"]) < 200
    assert stub.ledger.acked == {"stream-1": 1}


def test_a_redirect_is_not_followed_because_the_key_would_travel(stub, server):
    stub.answers.append((302, {"Location": f"{stub.url}/elsewhere"}, b""))

    assert server.post_batch("stream-1", SMALL).status == 302
    assert len(stub.requests) == 1


@pytest.mark.parametrize("content", [b"", b"<html>proxy</html>", b"[1]", b"\xff"])
def test_an_answer_that_is_no_json_object_has_an_empty_body(stub, server, content):
    stub.answers.append((200, {}, content))

    assert server.post_batch("stream-1", SMALL).body == {}


def test_retry_after_is_handed_on(stub, server):
    stub.answers.append((503, {"Retry-After": "7"}, json.dumps({"detail": "busy"}).encode()))

    answer = server.post_batch("stream-1", SMALL)

    assert (answer.status, answer.retry_after, answer.body) == (503, "7", {"detail": "busy"})


@pytest.mark.parametrize("value", ["lang=fran\u00e7ais", "lang=french; Path=/"])
def test_a_proxys_cookie_is_not_kept(stub, server, value):
    """One that is not ASCII would have ended every later request of the job."""
    stub.answers.append((502, {"Set-Cookie": value.encode().decode("latin-1")}, b"<html>proxy</html>"))

    first, second = server.post_batch("stream-1", SMALL), server.post_batch("stream-1", SMALL)

    assert (first.status, second.status) == (502, 200)
    assert "Cookie" not in stub.requests[1][1]


def test_whatever_a_request_ends_with_is_a_transport_error_and_the_next_one_begins_anew(stub, server, monkeypatch):
    def fail(*args, **named):
        raise UnicodeEncodeError("ascii", "\u00e7", 0, 1, "as a header that an answer left behind")

    with monkeypatch.context() as patch:
        patch.setattr(httpx.Client, "stream", fail)
        with pytest.raises(TransportError, match="no answer from"):
            server.post_batch("stream-1", SMALL)

    assert server.post_batch("stream-1", SMALL).status == 200


def test_a_server_that_is_down_is_a_transport_error():
    server = HttpServer("http://127.0.0.1:9", None, "noisescale/test")

    with pytest.raises(TransportError, match=r"no answer from http://127.0.0.1:9"):
        server.post_batch("stream-1", SMALL)
    server.close()


def test_a_server_that_is_too_slow_is_a_transport_error(stub, monkeypatch):
    monkeypatch.setattr("noisescale.transport.upload.http.ANSWER_SECONDS", 0.1)
    stub.seconds = 0.5
    server = HttpServer(stub.url, None, "noisescale/test")

    with pytest.raises(TransportError, match="timed out"):
        server.post_batch("stream-1", SMALL)
    server.close()
