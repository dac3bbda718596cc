"""What else the client asks a server, by which way, and for how long it waits."""

import json

import httpx
import pytest

from noisescale import commands
from noisescale.transport.upload.http import HttpServer
from noisescale_core.errors import TransportError
from stub_server import http_stub


@pytest.fixture
def stub():
    with http_stub() as running:
        yield running


@pytest.fixture
def server(stub):
    opened = HttpServer(stub.url, "ns_w_key", "noisescale/test")
    yield opened
    opened.close()


def test_a_question_goes_with_the_key_and_comes_back_as_json(stub, server):
    stub.answers += [(201, {"Retry-After": "3"}, b'{"id": "x"}'), (200, {}, b"text")]

    made = server.request("POST", "/api/v1/sweeps", {"name": "one"})
    read = server.read("/api/v1/runs")

    assert (made.status, made.body, made.retry_after) == (201, {"id": "x"}, "3")
    assert read == (200, "text")
    [(path, headers)] = stub.requests
    assert (path, headers["Authorization"]) == ("/api/v1/sweeps", "Bearer ns_w_key")


def test_a_number_that_is_not_finite_is_not_sent(server):
    with pytest.raises(ValueError, match="JSON compliant"):
        server.request("POST", "/api/v1/sweeps", {"value": float("inf")})


@pytest.mark.parametrize(("status", "expected"), [(200, True), (503, False), (204, False)])
def test_a_server_is_ready_when_it_says_so(stub, server, status, expected):
    stub.answers.append((status, {}, b'{"status": "ok"}' if status != 204 else b""))

    assert server.is_ready() == expected


@pytest.mark.parametrize(("status", "expected"), [(200, False), (401, True), (404, False), (503, False)])
def test_a_server_refuses_a_key_when_it_knows_nobody_by_it(stub, server, status, expected):
    stub.answers.append((status, {}, b"{}"))

    assert server.refuses_key() == expected


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_a_server_that_refuses_the_key_is_not_said_to_be_ready(stub, capsys, command):
    stub.answers += [(200, {}, b'{"status": "ok"}'), (401, {}, b"{}")]

    assert commands.main([command, "--url", stub.url]) == 1

    said = capsys.readouterr().out
    assert "refuses this key" in said
    assert "NOISESCALE_API_KEY" in said


def test_without_a_key_none_is_sent(stub):
    stub.answers.append((200, {}, b"{}"))
    server = HttpServer(stub.url, None, "noisescale/test")
    server.request("POST", "/x", {})
    server.close()

    assert "Authorization" not in stub.requests[0][1]


@pytest.mark.parametrize("ask", ["read", "is_ready", "request", "post_heartbeat"])
def test_no_answer_is_a_transport_error_whatever_was_asked(ask):
    server = HttpServer("http://127.0.0.1:9", None, "noisescale/test")
    arguments = {"read": ("/x",), "is_ready": (), "request": ("GET", "/x"), "post_heartbeat": ("s",)}[ask]

    with pytest.raises(TransportError, match=r"no answer from http://127\.0\.0\.1:9"):
        getattr(server, ask)(*arguments)
    server.close()


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(stub, server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")

    assert server.read("/x") == (200, '{"status": "ok"}')


def test_a_proxy_of_the_environment_is_asked_for_other_machines(stub, monkeypatch):
    monkeypatch.setenv("http_proxy", stub.url)
    stub.answers.append((200, {}, b"by the proxy"))
    server = HttpServer("http://noisescale.example", None, "noisescale/test")

    assert server.read("/x") == (200, "by the proxy")
    server.close()


@pytest.mark.parametrize(("given", "answer", "connect"), [(None, 30.0, 10.0), (3.0, 3.0, 3.0), (60.0, 60.0, 10.0)])
def test_it_waits_half_a_minute_for_an_answer_and_ten_seconds_for_a_connection(
    stub, monkeypatch, given, answer, connect
):
    waited, opened = [], []
    client = httpx.Client

    def spy(**options):
        waited.append(options)
        opened.append(client(**options))
        return opened[-1]

    monkeypatch.setattr(httpx, "Client", spy)
    server = HttpServer(stub.url, None, "noisescale/test", answer_seconds=given)
    for _ in range(2):
        server.read("/x")
    server.close()
    server.read("/x")
    server.forget()
    server.read("/x")
    server.close()
    opened[1].close()

    assert len(waited) == 3, "one connection until it is given back or left to the parent"
    assert (waited[0]["timeout"].read, waited[0]["timeout"].connect) == (answer, connect)


@pytest.mark.parametrize(
    ("url", "is_verified"),
    [
        ("http://127.0.0.1:1", False),
        ("https://127.0.0.1:1", True),
        ("http://a.example", True),
        ("https://a.example", True),
    ],
)
def test_certificates_are_looked_at_wherever_one_could_be_shown(monkeypatch, url, is_verified):
    opened = []
    client = httpx.Client

    def spy(**options):
        opened.append(options)
        return client(transport=httpx.MockTransport(lambda request: httpx.Response(200, content=json.dumps({}))))

    monkeypatch.setattr(httpx, "Client", spy)
    server = HttpServer(url, None, "noisescale/test")
    server.read("/x")

    assert opened[0]["verify"] == is_verified
    assert not opened[0]["follow_redirects"]


@pytest.mark.parametrize("ask", ["read", "request"])
@pytest.mark.parametrize(("text", "said"), [("", "ReadTimeout"), ("timed out", "timed out")])
def test_an_error_without_words_is_named_by_its_kind(stub, monkeypatch, ask, text, said):
    def fail(*arguments, **options):
        raise httpx.ReadTimeout(text)

    monkeypatch.setattr(httpx.Client, "get" if ask == "read" else "stream", fail)
    server = HttpServer(stub.url, None, "noisescale/test")

    with pytest.raises(TransportError, match=f"^no answer from {stub.url}: {said}$"):
        server.read("/x") if ask == "read" else server.request("GET", "/x")
    server.close()
