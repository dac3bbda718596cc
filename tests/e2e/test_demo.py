"""`make demo` from nothing: four real runs with noise scales and decisions, which stay after it ends."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
SHOW = """
import json, httpx, os, sys, threading
from demo.train import PLANS
from noisescale.config import Config
sys.argv = ["run_demo.py", "--once"]
import run_demo
answers = {}
train_all = run_demo.run_all
def then_ask(plans):
    train_all(plans)
    url = os.environ["NOISESCALE_URL"]
    key = {"Authorization": f"Bearer {Config.from_env().api_key}"}
    answers["runs"] = httpx.get(url + "/api/v1/runs", headers=key).json()["runs"]
    answers["page"] = httpx.get(url + "/", headers=key).status_code
run_demo.run_all = then_ask
run_demo.main()
json.dump(answers, open(os.environ["ANSWERS"], "w"))
"""


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """An environment in which nothing of the user's is found or touched."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)  # as root, Postgres runs as another user and must get in
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")}
        yield inherited | {
            "NOISESCALE_PORT": str(port),
            "NOISESCALE_DATA_DIR": f"{folder}/data with spaces",
            "NOISESCALE_DIR": f"{folder}/state",
            "ANSWERS": f"{folder}/answers.json",
            "PYTHONPATH": str(ROOT / "examples"),
        }


@pytest.mark.slow
def test_the_demo_shows_four_real_runs_with_noise_scales_and_decisions(environment):
    subprocess.run([sys.executable, "-c", SHOW], env=environment, check=True, timeout=280)

    answers = json.loads(Path(environment["ANSWERS"]).read_text())
    assert answers["page"] == 200
    assert {run["name"] for run in answers["runs"]} == {
        "digits-b256",
        "digits-b2048",
        "characters-b16",
        "characters-b128",
    }
    for run in answers["runs"]:
        assert run["status"] == "finished", run["name"]
        assert run["noise_scale"]["value"] is not None, run["name"]
        assert run["noise_scale"]["low"] < run["noise_scale"]["value"] < run["noise_scale"]["high"], run["name"]
        assert run["decision"]["decision"], run["name"]
        assert run["last_step"] + 1 == run["planned_steps"], run["name"]
