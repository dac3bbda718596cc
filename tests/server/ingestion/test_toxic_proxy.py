"""The proxy of the tests: when it is gone, nothing of it is open, whatever was happening to a connection."""

import gc
import socket
import time
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import uvicorn

import toxic_proxy as toxic
from served_in_thread import Connections, served_by, served_connections
from toxic_proxy import Poison, toxic_proxy

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"
POISONS = (
    toxic.clean,
    toxic.delayed,
    toxic.narrow,
    toxic.request_reset,
    toxic.request_swallowed,
    toxic.request_half_closed,
    toxic.request_flipped,
    toxic.request_twice,
    toxic.request_late,
    toxic.answer_dropped,
    toxic.answer_reset,
    toxic.closed_late,
)


async def says_nothing(reader, writer) -> None:
    while await reader.read(1 << 16):
        pass


@pytest.fixture(scope="module", autouse=True)
def what_is_there_is_not_collected_again() -> None:
    """A collection looks through what other tests keep, a second each time."""
    gc.collect()
    gc.freeze()


@contextmanager
def nothing_is_left_open() -> Iterator[None]:
    """What a closed loop left behind says so when it is collected."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(one.message) for one in said if one.category is ResourceWarning] == []


@pytest.mark.parametrize("poison", POISONS, ids=lambda poison: poison.__name__)
def test_a_request_that_nobody_answers_leaves_nothing_open(poison: Poison) -> None:
    with nothing_is_left_open(), served_connections(Connections(says_nothing)) as port:
        with toxic_proxy(f"http://127.0.0.1:{port}") as proxy:
            proxy.poison(poison, 20)
            client = socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])))
            client.sendall(REQUEST)
            time.sleep(0.05)
        client.close()


def test_whoever_is_just_connecting_leaves_nothing_open() -> None:
    with nothing_is_left_open(), closing(socket.socket()) as upstream:
        upstream.bind(("127.0.0.1", 0))
        upstream.listen(1)
        with toxic_proxy(f"http://127.0.0.1:{upstream.getsockname()[1]}") as proxy:
            clients = [socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) for _ in range(8)]
        for client in clients:
            client.close()


def test_an_answer_that_nobody_reads_leaves_nothing_open() -> None:
    async def answers(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * (1 << 20), "more_body": True})

    config = uvicorn.Config(
        answers, host="127.0.0.1", port=0, lifespan="off", log_level="critical", timeout_graceful_shutdown=1
    )
    with nothing_is_left_open():
        with served_by(uvicorn.Server(config)) as port:
            client = socket.create_connection(("127.0.0.1", port))
            client.sendall(REQUEST)
            time.sleep(0.1)
        client.close()
