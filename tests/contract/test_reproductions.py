"""What `noisescale reproduce` writes is what the server keeps and the dashboard reads: one shape, three programs."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from noisescale.config import Config
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.reproduce.page import changes_of
from noisescale_lab.reproduce.advice.recommendation_scores import Row
from noisescale_lab.reproduce.advice.scores import Score
from noisescale_lab.reproduce.advice.tables import Tables
from noisescale_lab.reproduce.advice.tables import summary as advice_summary
from noisescale_lab.reproduce.findings_to_server import store_findings
from reproduction_bodies import claim_summary
from served_app import TOKEN, free_port, served_app

VISITOR = {"authorization": f"Bearer {TOKEN}"}
NAN = float("nan")


@pytest.fixture(scope="module")
def address(new_database: Callable[[], str]) -> Iterator[str]:
    with served_app(new_database()) as url:
        yield url


def config(url: str) -> Config:
    return Config(url=url, api_key=TOKEN, project="reproduce")


def advice() -> dict[str, object]:
    """Of a campaign in which nothing was shown half-way, and nothing decided."""
    scores = [Score("ours", kind, 84, 80.0, 452.0, 3.0, 0.62, 0.51, 0.79, 0.1) for kind in ("all", "right")]
    row = Row("constant", "10 %", "measured, latest window", "published spread", 120, 0.0, 0.0, NAN, NAN, NAN, 0.0, 0.0,
              0.0, NAN, NAN, NAN, NAN, NAN, NAN, 40.0, 90.0)  # fmt: skip
    return advice_summary(Tables({("held out", "constant"): scores}, [row]))


@pytest.mark.slow
async def test_the_findings_of_both_commands_are_stored_once_and_drawn(address: str) -> None:
    summaries = {"claim": claim_summary(), "advice": advice()}

    said = [
        store_findings(config(address), found, kind=kind, effort="quick", seed=0)
        for kind, found in (*summaries.items(), *summaries.items())
    ]
    async with httpx.AsyncHTTPTransport() as transport:
        api = ApiClient(base_url=address, transport=transport)
        listed = (await api.reproductions(VISITOR, {"limit": 10})).reproductions
        read = [await api.reproduction(VISITOR, one.id) for one in listed]
    page = changes_of(read, listed, narrow=False)

    assert said[:2] == said[2:]
    assert {line.removeprefix(f"In the dashboard: {address}/reproduce/") for line in said} == {one.id for one in listed}
    assert {one.kind: one.claim or one.advice for one in read} == summaries
    assert "predicts the critical batch here" in page["reproduce-head.children"]
    assert len(page["reproduce-more.children"]) == 5


async def test_a_server_that_refuses_or_is_gone_is_said_and_nothing_raised(address: str) -> None:
    refused = store_findings(config(address), {"of another version": 1}, kind="claim", effort="quick", seed=0)
    gone = store_findings(config(f"http://127.0.0.1:{free_port()}"), advice(), kind="advice", effort="full", seed=0)

    assert refused.startswith("Not stored on the server: ")
    assert "claim" in refused
    assert gone.startswith("Not stored on the server, the same command tries again: no answer from")
