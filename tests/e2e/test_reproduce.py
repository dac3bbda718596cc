"""One task of `noisescale reproduce`, through the SDK, a server process and REST."""

import os

import httpx
import pytest

from noisescale.config import Config
from noisescale.reproduce.claim.campaign import Campaign, run_campaign, settings
from noisescale.reproduce.claim.to_server import answers


@pytest.mark.slow
def test_a_task_is_a_sweep_on_the_server_whose_fit_agrees_with_the_own_one(live_server, tmp_path):
    config = settings(Config.from_env(url=live_server, environ=dict(os.environ)), is_online=True)
    assert answers(config)

    (result,) = run_campaign(Campaign(tmp_path, "quick", 0, ("digits_softmax",), 1, config), lambda line: None)

    with httpx.Client(base_url=f"{live_server}/api/v1", timeout=60) as rest:
        stored = rest.get(f"/sweeps/{result.sweep_id}").json()
        found = rest.get(f"/sweeps/{result.sweep_id}/critical-batch").json()["targets"][-1]
        (row,) = rest.get("/comparison", params={"project": "reproduce"}).json()["tasks"]

    own, critical = result.targets[-1].fit, found["fit"]["critical_batch"]
    assert sum(run["is_stored"] for run in stored["runs"]) >= len(result.runs)
    assert stored["num_runs"] == result.num_runs
    assert critical["low"] < own.critical_batch < critical["high"]
    assert own.low < critical["value"] < own.high
    assert row["task"] == "digits_softmax"
