"""`noisescale reproduce` through the SDK, a server process and REST; and killed half-way."""

import json
import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from noisescale.config import Config
from noisescale_lab.reproduce.claim.campaign import Campaign, run_campaign, settings
from noisescale_lab.reproduce.claim.report.to_server import answers
from noisescale_lab.reproduce.claim.task_result import write
from reproduced_tasks import make_result

pytestmark = pytest.mark.processes

PROGRAM = "import sys; from noisescale.commands import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
def test_a_task_is_a_sweep_on_the_server_whose_fit_agrees_with_the_own_one(live_server, tmp_path):
    config = settings(Config.from_env(url=live_server, environ=dict(os.environ)), is_online=True)
    assert answers(config)

    ((result,), _) = run_campaign(Campaign(tmp_path, "quick", 0, ("digits_softmax",), 1, config), lambda line: None)

    with httpx.Client(base_url=f"{live_server}/api/v1", headers=AS_LOCAL_USER, timeout=60) as rest:
        stored = rest.get(f"/sweeps/{result.sweep_id}").json()
        found = rest.get(f"/sweeps/{result.sweep_id}/critical-batch").json()["targets"][-1]
        (row,) = rest.get("/comparison", params={"project": "reproduce"}).json()["tasks"]

    own, critical = result.targets[-1].fit, found["fit"]["critical_batch"]
    assert sum(run["is_stored"] for run in stored["runs"]) >= len(result.runs)
    assert stored["num_runs"] == result.num_runs
    assert critical["low"] < own.critical_batch < critical["high"]
    assert own.low < critical["value"] < own.high
    assert row["task"] == "digits_softmax"


@pytest.mark.slow
def test_the_command_stores_what_it_found_once_and_names_its_page(live_server, tmp_path):
    write(make_result("digits_mlp"), tmp_path / "digits_mlp.json")
    arguments = ["reproduce", "--quick", "--processes", "1", "--folder", str(tmp_path), "--tasks", "digits_mlp"]

    said = [finished([*arguments, "--url", live_server]) for _ in range(2)]

    with httpx.Client(base_url=f"{live_server}/api/v1", headers=AS_LOCAL_USER, timeout=60) as rest:
        stored = rest.get("/reproductions", params={"project": "reproduce", "kind": "claim"}).json()
        found = rest.get(f"/reproductions/{stored['reproductions'][0]['id']}").json()["claim"]
    assert stored["total"] == 1
    assert all(f"In the dashboard: {live_server}/reproduce/{stored['reproductions'][0]['id']}" in one for one in said)
    assert found == json.loads((tmp_path / "summary" / "summary.json").read_text())


def finished(arguments):
    """What the command says, with the key of the local user."""
    environment = os.environ | {"NOISESCALE_API_KEY": LOCAL_TOKEN}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env=environment, capture_output=True, text=True, check=True
    ).stdout


def start(folder):
    """The command in a process of its own, on two small tasks."""
    arguments = ["reproduce", "--quick", "--no-server", "--processes", "1", "--folder", str(folder)]
    arguments += ["--tasks", "powerlaw_regression,diabetes_linreg"]
    return subprocess.Popen([sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_run_that_is_killed_half_way_goes_on_and_gives_the_figures_of_one_that_was_not(tmp_path):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole, _ = start(straight).communicate()

    killed = start(broken)
    while not list(broken.glob("*.json")):
        assert killed.poll() is None
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    num_before = len(list(broken.glob("*.json")))
    rest, _ = start(broken).communicate()

    assert num_before == 1
    assert "1 of 2 tasks were there already" in rest
    assert "tasks were there already" not in whole
    files = sorted(path.name for path in (straight / "summary").iterdir())
    assert {"targets.csv", "summary.json"} <= set(files)
    for name in files:
        assert (broken / "summary" / name).read_text() == (straight / "summary" / name).read_text(), name
