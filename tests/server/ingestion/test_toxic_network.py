"""A network that delays, cuts, swallows, repeats or damages requests: each record is stored once, as it was logged."""

import asyncio
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import asyncpg
import pytest

import toxic_proxy as toxic
from noisescale.transport.spool.spool import MemorySpool
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.stream import Stream
from noisescale.transport.upload.uploader import Uploader
from noisescale.transport.wire import RunRecord
from served_app import TOKEN, served_app
from spooled_streams import metric
from toxic_proxy import Poison, ToxicProxy, toxic_proxy

pytestmark = pytest.mark.processes

NUM_RECORDS = 40
ANSWER_SECONDS = 0.5
BYTES_OF_REQUEST, BYTES_OF_ANSWER = 1100, 320
"""A little more than either has, so that the places to cut reach to the end."""

PLACES = {
    toxic.request_reset: BYTES_OF_REQUEST,
    toxic.request_swallowed: BYTES_OF_REQUEST,
    toxic.request_half_closed: BYTES_OF_REQUEST,
    toxic.request_flipped: BYTES_OF_REQUEST,
    toxic.answer_reset: BYTES_OF_ANSWER,
}
WHOLE = (
    toxic.delayed,
    toxic.narrow,
    toxic.request_twice,
    toxic.request_late,
    toxic.answer_dropped,
    toxic.closed_late,
)


@pytest.fixture(scope="module")
def database(new_database: Callable[[], str]) -> str:
    """Its address."""
    return new_database()


@pytest.fixture(scope="module")
def proxy(database: str) -> Iterator[ToxicProxy]:
    """In front of a real server."""
    with served_app(database) as url, toxic_proxy(url) as opened:
        yield opened


def deliver_through(proxy: ToxicProxy, poison: Poison, place: int, num_records: int) -> Stream:
    """A stream of which the first connection to the server was poisoned, and that was delivered all the same."""
    run_id = str(uuid4())
    stream = Stream(run_id, MemorySpool(), lambda: RunRecord({"project": "demo"}, {"started_at": time.time()}))
    for number in range(num_records):
        stream.append(metric(number))
    faults: list[Exception] = []
    server = HttpServer(proxy.url, TOKEN, "noisescale/test", answer_seconds=ANSWER_SECONDS)
    uploader = Uploader(stream, server, faults.append, interval_seconds=0.01, first_backoff_seconds=0.01)
    proxy.poison(poison, place)
    uploader.notify(1)
    deadline = time.monotonic() + 60
    while stream.delivery().num_waiting and time.monotonic() < deadline and uploader.stop_reason is None:
        time.sleep(0.002)
    uploader.close()
    assert faults == []
    assert uploader.stop_reason is None
    assert stream.delivery().num_waiting == 0
    return stream


async def stored(database: str, stream: Stream) -> list[tuple[int, float]]:
    connection = await asyncpg.connect(database.replace("+asyncpg", ""))
    try:
        query = "SELECT seq, value FROM metric WHERE run_id = $1 ORDER BY seq"
        return [tuple(row) for row in await connection.fetch(query, stream.run_id)]
    finally:
        await connection.close()


def check(proxy: ToxicProxy, database: str, poison: Poison, place: int, *, num_records: int = NUM_RECORDS) -> None:
    before = proxy.num_poisoned

    stream = deliver_through(proxy, poison, place, num_records)

    assert proxy.num_poisoned == before + 1
    assert stream.delivery().num_lost == 0
    found = asyncio.run(stored(database, stream))
    assert found == [(number + 2, float(number)) for number in range(num_records)], (poison.__name__, place)


@pytest.mark.parametrize("poison", WHOLE, ids=lambda poison: poison.__name__)
def test_a_request_or_answer_as_a_whole(proxy: ToxicProxy, database: str, poison: Poison) -> None:
    check(proxy, database, poison, 1)


@pytest.mark.parametrize("poison", PLACES, ids=lambda poison: poison.__name__)
def test_at_its_beginning_and_in_its_middle(proxy: ToxicProxy, database: str, poison: Poison) -> None:
    for place in (0, PLACES[poison] // 2):
        check(proxy, database, poison, place)


@pytest.mark.parametrize("place", [100, 200])
def test_a_bit_of_a_small_batch_is_another_one(proxy: ToxicProxy, database: str, place: int) -> None:
    """So small that compressing it saves nothing, but for the checksum."""
    check(proxy, database, toxic.request_flipped, place, num_records=1)


@pytest.mark.slow
@pytest.mark.parametrize("poison", PLACES, ids=lambda poison: poison.__name__)
def test_at_every_sixteenth_byte(proxy: ToxicProxy, database: str, poison: Poison) -> None:
    for place in range(0, PLACES[poison], 16):
        check(proxy, database, poison, place)
