"""One measurement's whole journey: a real training run, through Postgres, to REST and to a real browser."""

import httpx
import pytest
import torch
from playwright.async_api import Browser

from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from demo import digits
from demo.train import Plan, train

pytestmark = pytest.mark.processes

STEPS = 60


@pytest.fixture(scope="module")
def trained(live_server: str) -> None:
    """A digits run of 60 steps, trained once for this file."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_URL", live_server)
        patch.setenv("NOISESCALE_API_KEY", LOCAL_TOKEN)
        patch.setenv("NOISESCALE_GROUP_SECONDS", "0")
        train(digits.make_task(), Plan("digits", batch_size=256, learning_rate=0.05, steps=STEPS), lambda *_: None)


@pytest.fixture
def run(live_server: str, trained: None) -> dict:
    return (
        httpx.get(f"{live_server}/api/v1/runs", headers=AS_LOCAL_USER, params={"q": "digits-b256"})
        .raise_for_status()
        .json()["runs"][0]
    )


def test_the_run_is_complete_and_has_a_noise_scale_with_its_interval(live_server, run):
    streams = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/streams", headers=AS_LOCAL_USER).json()["streams"]

    assert run["status"] == "finished"
    assert run["last_step"] == STEPS - 1
    assert run["examples"] == 256 * STEPS
    assert run["noise_scale"]["state"] in ("resolved", "tentative")
    assert run["noise_scale"]["low"] < run["noise_scale"]["value"] < run["noise_scale"]["high"]
    assert [(s["num_lost"], s["num_rejected"]) for s in streams] == [(0, 0)]
    assert streams[0]["acked_seq"] == streams[0]["num_stored"]


def test_every_step_is_in_the_series(live_server, run):
    series = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/noise-scale", headers=AS_LOCAL_USER).json()

    assert series["points"]["step"] == list(range(STEPS))
    assert series["points"]["loss"][0] == pytest.approx(2.3, abs=0.2)
    assert series["points"]["loss"][-1] < series["points"]["loss"][0]


def test_layers_and_metrics_arrive(live_server, run):
    groups = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/groups", headers=AS_LOCAL_USER).json()["groups"]
    metrics = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/metrics", headers=AS_LOCAL_USER).json()["metrics"]

    assert [group["name"] for group in groups] == ["0", "2"]
    assert [metric["name"] for metric in metrics] == ["eval_loss"]
    assert len(metrics[0]["step"]) == 2


def test_layers_add_up_to_the_total(live_server, run):
    groups = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/groups", headers=AS_LOCAL_USER).json()["groups"]
    query = {"points": 1, "window": STEPS}
    total = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/noise-scale", headers=AS_LOCAL_USER, params=query).json()[
        "points"
    ]

    assert total["num_updates"] == [STEPS]
    assert sum(group["trace_cov"] for group in groups) == pytest.approx(total["trace_cov"][0], rel=1e-9)
    assert sum(group["grad_sq_norm"] for group in groups) == pytest.approx(total["grad_sq_norm"][0], rel=1e-9)


def test_the_recommendation_has_a_decision_and_says_that_it_is_uncalibrated(live_server, run):
    answer = httpx.get(f"{live_server}/api/v1/runs/{run['id']}/recommendation", headers=AS_LOCAL_USER).json()

    assert answer["decision"] in (
        "increase",
        "decrease",
        "keep",
        "probably_increase",
        "probably_decrease",
        "keep_for_now",
    )
    assert 0 <= answer["odds"]["probability"] <= 1
    assert answer["calibration"]["state"] == "uncalibrated"
    assert answer["interval"]["low"] < answer["interval"]["value"] < answer["interval"]["high"]
    assert answer["learning_rate"]["current"] == 0.05
    assert answer["next_step"]


@pytest.mark.browser
async def test_the_browser_shows_the_run_in_the_table_and_on_its_page(live_server: str, run: dict, browser: Browser):
    context = await browser.new_context(viewport={"width": 1440, "height": 1000})
    page = await context.new_page()
    complaints, strangers = [], []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: None if r.url.startswith((live_server, "data:", "blob:")) else strangers.append(r.url))

    await page.goto(f"{live_server}/login?token={LOCAL_TOKEN}&next=/runs")
    row = page.locator(".ag-row", has_text="digits-b256").first
    await row.wait_for()
    table = await row.inner_text()
    await page.goto(f"{live_server}/runs/{run['id']}")
    await page.wait_for_selector(".js-plotly-plot .scatterlayer .trace", state="attached")
    heading = await page.locator("h1").inner_text()
    card = await page.locator("text=Recommendation").first.is_visible()
    await context.close()

    assert "256" in table
    assert heading == "digits-b256"
    assert card
    assert complaints == []
    assert strangers == []
