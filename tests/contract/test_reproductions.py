"""What `noisescale reproduce` writes is what the server keeps and the dashboard reads: one shape, three programs."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from noisescale.config import Config
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.reproduce.page import changes_of
from noisescale_lab.reproduce.advice.recommendation_scores import Row
from noisescale_lab.reproduce.advice.scores import Score
from noisescale_lab.reproduce.advice.tables import Tables
from noisescale_lab.reproduce.advice.tables import summary as advice_summary
from noisescale_lab.reproduce.claim.exact_quadratics import QuadraticCheck
from noisescale_lab.reproduce.claim.judged.findings import findings
from noisescale_lab.reproduce.claim.report.files import summary as claim_summary_of
from noisescale_lab.reproduce.claim.report.to_server import store_findings
from noisescale_lab.reproduce.claim.task_result import AdaptiveBatch
from reproduced_tasks import make_result
from reproduction_bodies import CLAIMS, claim_summary
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


def claim_of(tasks: str) -> object:
    """What the command writes of so many tasks, B_crit and noise scale rising, and of one that does not count."""
    number, _, whether = tasks.partition(", ")
    adaptive = AdaptiveBatch(16, 128, 0.97, 1.02)
    results = [
        make_result(f"task_{place}", critical_batch=3.0**place, noise_scale=2.5**place, adaptive=adaptive)
        for place in range(1, int(number) + 1)
    ]
    if whether != "all count":
        results.append(make_result("diabetes_linreg", exclusion="S_min 2.1 is below 5 steps"))
    quadratic = QuadraticCheck("quadratic_isotropic", 12, 12, 11, 31.0, 30.5, 30.5)
    return json.loads(json.dumps(claim_summary_of(findings(results, [quadratic])), allow_nan=False))


def test_the_claims_that_other_tests_stand_on_are_as_the_command_writes_them() -> None:
    """Where it writes something else on purpose: put `{tasks: claim_of(tasks)}` into the file."""
    kept = json.loads(CLAIMS.read_text())

    assert rounded(kept) == rounded({tasks: claim_of(tasks) for tasks in kept})


def rounded(found: Any) -> Any:
    """To eight digits: the last ones are those of a processor's way to add up."""
    if isinstance(found, dict):
        return {name: rounded(one) for name, one in found.items()}
    if isinstance(found, list):
        return [rounded(one) for one in found]
    return float(f"{found:.7e}") if isinstance(found, float) else found


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
