"""A sender that reads without end waits; twenty tabs of a person do not, and others do not notice."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from starlette.responses import Response
from starlette.types import Message

from app_in_process import client_of, running_app
from keys_of_tests import bearer, new_key
from noisescale_server.api import read_turns
from noisescale_server.api.read_rate import BURST_SECONDS, SECONDS_OF_A_READ, ReadRate, TooManyReads
from noisescale_server.api.read_turns import AT_ONCE, Busy, Turns
from noisescale_server.services import keys
from noisescale_server.settings import Settings
from problems import assert_problem


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def let_in(rate: ReadRate, sender: str, times: int) -> int:
    """How many of so many reads at one moment are let in."""
    found = 0
    for _ in range(times):
        try:
            rate.count(sender)
        except TooManyReads:
            continue
        found += 1
    return found


class TestBucket:
    def test_a_burst_is_let_in_and_then_so_many_a_second(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)

        at_once = let_in(rate, "ada", 100)
        clock.now += 5
        later = let_in(rate, "ada", 100)

        assert (at_once, later) == (BURST_SECONDS, 5)

    def test_it_says_how_long_to_wait(self, clock: Clock) -> None:
        rate = ReadRate(6, clock)
        let_in(rate, "ada", 10)

        with pytest.raises(TooManyReads, match="try again in 10 s") as refused:
            rate.count("ada")

        assert refused.value.retry_after_seconds == 10
        clock.now += 10
        rate.count("ada")

    def test_each_sender_has_its_own(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)

        assert (let_in(rate, "ada", 100), let_in(rate, "bea", 1)) == (BURST_SECONDS, 1)

    def test_what_works_as_long_as_five_reads_is_charged_as_five(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)

        rate.count("ada")
        rate.charge("ada", 5 * SECONDS_OF_A_READ)

        assert let_in(rate, "ada", 100) == BURST_SECONDS - 5

    def test_what_works_less_than_a_read_pays_for_is_charged_as_one(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)

        rate.count("ada")
        rate.charge("ada", 0.1 * SECONDS_OF_A_READ)

        assert let_in(rate, "ada", 100) == BURST_SECONDS - 1

    def test_who_has_let_the_server_work_longer_than_its_allowance_waits_until_that_is_paid(self, clock: Clock) -> None:
        rate = ReadRate(60, clock)
        rate.count("ada")
        rate.charge("ada", (BURST_SECONDS + 9) * SECONDS_OF_A_READ)

        with pytest.raises(TooManyReads, match="each 10 ms of work counted as one: try again in 10 s"):
            rate.count("ada")
        clock.now += 10
        rate.count("ada")

    def test_those_who_were_here_last_are_remembered(self, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("noisescale_server.api.read_rate.MAX_SENDERS", 2)
        rate = ReadRate(60, clock)
        let_in(rate, "ada", 100)
        for sender in ("bea", "ada", "cid", "ada", "dan"):
            let_in(rate, sender, 1)

        assert let_in(rate, "ada", 1) == 0
        assert len(rate._known) == 2


async def test_a_few_of_a_sender_are_worked_on_at_once_and_those_of_another_beside_them() -> None:
    turns, gate = Turns(), asyncio.Event()
    here: list[str] = []

    async def read(sender: str) -> None:
        async with turns.of(sender):
            here.append(sender)
            await gate.wait()

    tasks = [asyncio.create_task(read(sender)) for sender in ["ada"] * 50 + ["bea"]]
    await asyncio.sleep(0.01)
    at_once = sorted(here)
    gate.set()
    await asyncio.gather(*tasks)

    assert at_once == ["ada"] * AT_ONCE + ["bea"]
    assert len(here) == 51
    assert turns._queues == {}


class TestWork:
    """What a turn is charged for."""

    @pytest.fixture
    def turns(self, clock: Clock) -> Turns:
        return Turns(now=clock)

    async def test_it_is_the_time_of_the_turn(self, turns: Turns, clock: Clock) -> None:
        async with turns.of("ada") as turn:
            clock.now += 3

        assert turn.seconds == 3

    async def test_the_time_of_several_at_once_is_shared_among_them(self, turns: Turns, clock: Clock) -> None:
        async with turns.of("ada") as first:
            clock.now += 1
            async with turns.of("ada") as second:
                clock.now += 4
            clock.now += 1

        assert (first.seconds, second.seconds) == (1 + 4 / 2 + 1, 4 / 2)

    async def test_others_have_no_part_in_it(self, turns: Turns, clock: Clock) -> None:
        async with turns.of("ada") as ada, turns.of("bea") as bea:
            clock.now += 4

        assert (ada.seconds, bea.seconds) == (4, 4)

    async def test_waiting_for_a_turn_is_none(self, clock: Clock) -> None:
        turns, works = Turns(at_once=1, now=clock), asyncio.Event()

        async def read() -> float:
            async with turns.of("ada") as turn:
                works.set()
                clock.now += 1
                await asyncio.sleep(0)
            return turn.seconds

        assert await asyncio.gather(read(), read()) == [1, 1]

    async def test_nor_is_waiting_for_the_reader(self, turns: Turns, clock: Clock) -> None:
        async def send_to_a_slow_reader(_message: Message) -> None:
            clock.now += 20

        async with turns.of("ada") as turn:
            clock.now += 1
            await turn.paused_while(send_to_a_slow_reader)({"type": "http.response.start", "status": 200})
            clock.now += 1

        assert (turn.seconds, turn.has_failed) == (2, False)

    async def test_a_failure_of_the_server_is_noticed(self, turns: Turns) -> None:
        async def send(_message: Message) -> None:
            """Nothing."""

        async with turns.of("ada") as turn:
            await turn.paused_while(send)({"type": "http.response.start", "status": 503})

        assert turn.has_failed


async def test_who_waits_for_its_own_reads_in_vain_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_turns, "LONGEST_WAIT_SECONDS", 0.02)
    turns = Turns(at_once=1)

    async with turns.of("ada"):
        with pytest.raises(Busy, match="try again in 2 s"):
            async with turns.of("ada"):
                pytest.fail("it was not its turn")
        async with turns.of("bea"):
            pass
    async with turns.of("ada"):
        pass

    assert turns._queues == {}


@pytest.fixture
async def client(new_database: Callable[[], str]) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP into a server that lets three reads a minute in, and one more at once."""
    async with running_app(new_database(), reads_per_minute=3) as app, client_of(app) as opened:
        yield opened


async def test_one_read_too_many_is_429_with_the_seconds_to_wait_and_the_connection_ends(
    client: httpx.AsyncClient,
) -> None:
    answers = [await client.get("/api/v1/runs") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 429]
    assert_problem(answers[1], 429, "too-many-reads")
    assert answers[1].json()["limit_per_minute"] == 3
    assert int(answers[1].headers["retry-after"]) >= 1
    # what waits on the same connection would be refused, too
    assert answers[1].headers["connection"] == "close"


@pytest.mark.parametrize(("status", "let_in_again"), [(200, False), (503, True)])
async def test_who_lets_the_server_work_long_has_paid_for_several_reads_but_not_for_its_failures(
    new_database: Callable[[], str], status: int, let_in_again: bool
) -> None:
    async def work() -> Response:
        await asyncio.sleep(30 * SECONDS_OF_A_READ)
        return Response(status_code=status)

    # a burst of twenty
    async with running_app(new_database(), reads_per_minute=60) as app, client_of(app) as opened:
        app.add_api_route("/api/v1/work", work)
        # before the route of unknown paths
        app.router.routes.insert(0, app.router.routes.pop())
        assert (await opened.get("/api/v1/work")).status_code == status
        answer = await opened.get("/api/v1/me")

    assert (answer.status_code == 200) == let_in_again


async def test_another_key_is_not_held_back(client: httpx.AsyncClient) -> None:
    key = await new_key(client, "read")
    used_up = [(await client.get("/api/v1/runs")).status_code for _ in range(2)]

    answer = await client.get("/api/v1/runs", headers=bearer(key))

    assert (used_up[-1], answer.status_code) == (429, 200)


async def test_who_has_no_key_is_counted_by_address(client: httpx.AsyncClient) -> None:
    client.headers.pop("Authorization")

    answers = [(await client.get("/login")).status_code for _ in range(2)]

    assert answers[1] == 429


async def test_a_key_that_many_requests_bring_at_once_is_looked_up_with_the_first_and_once_more(
    new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = []
    before = keys.recognized

    async def recognized(*given: Any, **named: Any) -> Any:
        looked_up.append(named)
        return await before(*given, **named)

    async with running_app(new_database(), pool_size=1, pool_max_overflow=0) as app, client_of(app) as opened:
        key = await new_key(opened, "read")
        monkeypatch.setattr(keys, "recognized", recognized)
        answers = await asyncio.gather(*(opened.get("/api/v1/me", headers=bearer(key)) for _ in range(50)))

    assert {answer.status_code for answer in answers} == {200}
    assert 1 <= len(looked_up) <= 2


async def test_probes_are_never_held_back(client: httpx.AsyncClient) -> None:
    answers = [(await client.get(path)).status_code for path in ("/livez", "/readyz") for _ in range(5)]

    assert set(answers) == {200}


async def test_what_jobs_send_and_changes_are_not_counted_as_reads(client: httpx.AsyncClient) -> None:
    run = [(await client.post("/api/v1/runs", json={"project": "demo"})).status_code for _ in range(5)]
    cursor = [(await client.get("/api/v1/streams/7d1f0c9e-0000-4000-8000-000000000000")).status_code for _ in range(5)]

    assert (set(run), set(cursor)) == ({201}, {404})


def test_the_default_lets_in_what_twenty_tabs_ask_when_they_open_at_once() -> None:
    """A page asks 12 to 27 times until it is drawn: itself, callbacks, what these read; counted in a browser."""
    asked = 20 * 27

    assert BURST_SECONDS * Settings(database_url=None).reads_per_minute / 60 >= asked
