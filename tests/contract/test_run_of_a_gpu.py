"""A job on an H200 without a network left its records on disk: a server that gets them later says what the job said.

A language model of 136 M parameters on code of Python packages, `benchmarks/gpu/language_model.py` of commit 24fad096;
what the job itself saw is in `benchmarks/results/gpu_language_model-nvidia-h200.csv`.
"""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from keys_of_tests import bearer
from noisescale import commands
from served_app import TOKEN, served_app

pytestmark = pytest.mark.processes

RUN = "fb87fe25-3ea4-4685-b221-a981f17dabed"
LEFT_BEHIND = Path(__file__).parent / "h200_language_model" / "run" / "stream"
SEEN = Path(__file__).parents[2] / "benchmarks" / "results" / "gpu_language_model-nvidia-h200.csv"


@pytest.fixture
def synced(new_database: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> httpx.Client:
    """A server that has been sent the records."""
    monkeypatch.setenv("NOISESCALE_API_KEY", TOKEN)
    folder = tmp_path / "spool" / RUN / "e4ac211f-dfef-4215-b0fc-80c83d0db6db"
    shutil.copytree(LEFT_BEHIND, folder)
    (folder / "lock").touch()
    with served_app(new_database()) as url:
        assert commands.main(["sync", str(folder), "--url", url]) == 0
        with httpx.Client(base_url=f"{url}/api/v1", headers=bearer(TOKEN)) as client:
            yield client


def test_a_server_says_of_a_gpus_run_what_the_job_itself_has_said(synced: httpx.Client) -> None:
    run = synced.get(f"/runs/{RUN}").json()
    with SEEN.open(newline="") as file:
        last = list(csv.DictReader(file))[-1]

    assert (run["name"], run["device"], run["unit"]) == ("GPT 136M, 64 sequences", "NVIDIA H200", "tokens")
    assert (run["last_step"], run["status"]) == (247, "finished")
    assert run["noise_scale"]["state"] == last["state"] == "resolved"
    for name, column in {"value": "noise_scale", "low": "noise_scale_low", "high": "noise_scale_high"}.items():
        assert run["noise_scale"][name] == pytest.approx(float(last[column]), rel=1e-5), name
    assert run["loss"] == pytest.approx(float(last["loss"]), rel=1e-5)


def test_its_advice_has_a_batch_and_odds(synced: httpx.Client) -> None:
    decision = synced.get(f"/runs/{RUN}").json()["decision"]

    assert (decision["decision"], decision["batch_size"]) == ("keep_for_now", 32)
    assert decision["probability"] < 0.6
