"""The client of the REST API: answers become dataclasses, refusals one typed error."""

import asyncio

import httpx
import pytest

from fakes_api import FakeApi
from fakes_runs import RUNS
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers

NOBODY = "00000000-0000-4000-8000-999999999999"


@pytest.fixture
def api(fake_api: FakeApi) -> ApiClient:
    return ApiClient(base_url="http://api", transport=httpx.ASGITransport(app=fake_api.app))


async def test_runs_come_as_a_page_with_estimates_and_decisions(api: ApiClient) -> None:
    page = await api.runs({}, {"limit": 3})

    assert page.total == len(RUNS)
    assert page.next_cursor == "3"
    assert page.runs[0].noise_scale.value == 1490
    assert page.runs[0].decision.decision == "increase"
    assert page.runs[0].example_efficiency.value == pytest.approx(1490 / 2002)


async def test_an_unresolved_estimate_keeps_its_bound_and_reason(api: ApiClient) -> None:
    run = await api.run({}, RUNS[5].id)

    assert run.noise_scale.value is None
    assert run.noise_scale.low == 344
    assert run.noise_scale.reason == "interval_unbounded"


async def test_what_a_newer_server_adds_is_ignored(api: ApiClient) -> None:
    series = await api.noise_scale({}, RUNS[0].id, {"points": 10})

    assert len(series.points.step) == 10
    assert not hasattr(series.points, "flags")


async def test_the_visitors_key_and_cookie_go_with_the_call(api: ApiClient, fake_api: FakeApi) -> None:
    visitor = visitor_headers({"Authorization": "Bearer k", "Cookie": "s=1", "X-Other": "no"})

    await api.projects(visitor)

    sent = fake_api.requests[-1].headers
    assert (sent["authorization"], sent["cookie"]) == ("Bearer k", "s=1")
    assert "x-other" not in sent


async def test_all_pages_of_streams_are_read() -> None:
    pages = {None: (["a", "b"], "b"), "b": (["c"], None)}

    def answer(request: httpx.Request) -> httpx.Response:
        names, next_cursor = pages[request.url.params.get("cursor")]
        return httpx.Response(
            200, json={"streams": [{"stream_id": name} for name in names], "next_cursor": next_cursor}
        )

    api = ApiClient(base_url="http://api", transport=httpx.MockTransport(answer))

    assert [one.stream_id for one in await api.streams({}, NOBODY)] == ["a", "b", "c"]


async def test_all_pages_of_layers_are_read_with_what_was_asked() -> None:
    pages = {None: (["a", "b"], "b"), "b": (["c"], None)}
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params.get("points"))
        names, next_cursor = pages[request.url.params.get("cursor")]
        return httpx.Response(200, json={"groups": [{"name": name} for name in names], "next_cursor": next_cursor})

    api = ApiClient(base_url="http://api", transport=httpx.MockTransport(answer))

    assert [one.name for one in await api.groups({}, NOBODY, {"points": 24})] == ["a", "b", "c"]
    assert asked == ["24", "24"]


async def test_a_missing_run_is_a_problem_that_says_so(api: ApiClient) -> None:
    with pytest.raises(ApiProblem) as raised:
        await api.run({}, NOBODY)

    assert raised.value.is_missing
    assert raised.value.title == "Run not found"
    assert raised.value.request == f"GET /api/v1/runs/{NOBODY}"


async def test_an_api_that_does_not_answer_is_a_problem_without_status() -> None:
    def refuse(_request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    api = ApiClient(base_url="http://api", transport=httpx.MockTransport(refuse))

    with pytest.raises(ApiProblem) as raised:
        await api.projects({})
    assert raised.value.status is None


async def test_a_run_id_from_the_address_bar_cannot_reach_another_path(api: ApiClient, fake_api: FakeApi) -> None:
    with pytest.raises(ApiProblem) as raised:
        await api.run({}, "../projects?x=")

    assert raised.value.is_missing
    assert fake_api.requests == []


async def test_short_series_of_several_runs_are_one_request_with_what_happened_in_them(
    api: ApiClient, fake_api: FakeApi
) -> None:
    found = await api.several_series({}, [RUNS[0].id, NOBODY, RUNS[1].id], points=40)

    assert set(found) == {RUNS[0].id, RUNS[1].id}
    assert [event.kind for event in found[RUNS[0].id].events] == ["batch", "lr"]
    assert {len(column) for column in (found[RUNS[0].id].points.state, found[RUNS[0].id].points.wall_time)} == {40}
    assert len(fake_api.requests) == 1


async def test_sparklines_come_twenty_at_a_time_and_of_a_run_without_steps_empty(
    api: ApiClient, fake_api: FakeApi
) -> None:
    nobodies = [f"00000000-0000-4000-8000-0000000099{number:02d}" for number in range(24)]

    found = await api.sparklines({}, [RUNS[0].id, *nobodies])

    assert fake_api.paths() == ["/api/v1/runs/sparklines"] * 2
    assert (len(found[RUNS[0].id].step), len(found[nobodies[0]].step), len(found)) == (28, 0, 25)


async def test_sparklines_that_cannot_be_read_are_left_out(api: ApiClient, fake_api: FakeApi) -> None:
    fake_api.failing = True

    assert await api.sparklines({}, [RUNS[0].id]) == {}


class TestReadingTogether:
    async def test_parts_of_a_page_that_ask_for_the_same_share_one_request(
        self, api: ApiClient, fake_api: FakeApi
    ) -> None:
        first, second = await asyncio.gather(*(api.run({}, RUNS[0].id) for _ in range(2)))
        await api.run({}, RUNS[0].id)

        assert first == second
        assert len(fake_api.requests) == 2

    async def test_visitors_and_questions_that_differ_share_nothing(self, api: ApiClient, fake_api: FakeApi) -> None:
        await asyncio.gather(
            api.noise_scale({"cookie": "a"}, RUNS[0].id, {"points": 10}),
            api.noise_scale({"cookie": "b"}, RUNS[0].id, {"points": 10}),
            api.noise_scale({"cookie": "b"}, RUNS[0].id, {"points": 11}),
        )

        assert sorted((r.headers["cookie"], r.query_params["points"]) for r in fake_api.requests) == [
            ("a", "10"), ("b", "10"), ("b", "11"),
        ]  # fmt: skip

    async def test_after_a_change_nobody_is_given_what_was_asked_before_it(
        self, api: ApiClient, fake_api: FakeApi
    ) -> None:
        before = asyncio.create_task(api.run({}, RUNS[0].id))
        await asyncio.sleep(0)
        change = asyncio.create_task(api.change_run({}, RUNS[0].id, name="renamed"))
        await asyncio.sleep(0)

        await asyncio.gather(before, change, api.run({}, RUNS[0].id))

        assert [r.method for r in fake_api.requests].count("GET") == 2

    async def test_who_goes_away_takes_the_answer_from_nobody_else(self, api: ApiClient) -> None:
        leaving, staying = (asyncio.create_task(api.run({}, RUNS[0].id)) for _ in range(2))
        await asyncio.sleep(0)

        leaving.cancel()

        assert (await staying).id == RUNS[0].id

    async def test_each_hears_of_a_refusal(self, api: ApiClient) -> None:
        found = await asyncio.gather(*(api.run({}, NOBODY) for _ in range(2)), return_exceptions=True)

        assert all(isinstance(one, ApiProblem) and one.is_missing for one in found)

    async def test_nothing_is_compressed_within_one_process(self, api: ApiClient, fake_api: FakeApi) -> None:
        await api.projects({})

        assert fake_api.requests[-1].headers["accept-encoding"] == "identity"
