"""`noisescale demo --data` on a fresh server: every list has rows, and a second time nothing is new."""

import hashlib
import json
import lzma
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from noisescale.commands import demo, main
from noisescale_server.demo import requests_file
from served_app import TOKEN, served_app

pytestmark = [pytest.mark.processes, pytest.mark.slow]

CLIFF_SECONDS = 30.0
"""Of processors, client and server together: 8 on a busy machine. A guard against a cliff, no measurement."""

MOST_BYTES = 1_500_000
LISTS = {
    "/runs?limit=500": "runs",
    "/projects": "projects",
    "/projects/demo/tasks": "tasks",
    "/projects/demo/alerts/rules": "rules",
    "/sweeps?kind=sweep": "sweeps",
    "/sweeps?kind=branch": "sweeps",
    "/reproductions": "reproductions",
    "/projects/demo/calibrations": "calibrations",
    "/comparison": "tasks",
}


@pytest.fixture(scope="module")
def server(new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A fresh server, and the environment that leads the command to it."""
    with served_app(new_database()) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_URL", url)
        patch.setenv("NOISESCALE_API_KEY", TOKEN)
        patch.setenv("NOISESCALE_DIR", str(tmp_path_factory.mktemp("state")))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=f"{url}/api/v1", headers=headers, timeout=60) as http:
            yield http


@pytest.fixture(scope="module")
def loading(server: httpx.Client) -> float:
    """Seconds of processors that the first time takes."""
    began = time.process_time()
    assert main(["demo", "--data"]) == 0
    return time.process_time() - began


@pytest.fixture(scope="module")
def recorded() -> list[Mapping[str, Any]]:
    """The lines of the file."""
    return [json.loads(line) for line in lzma.decompress(requests_file().read_bytes()).splitlines()]


def answer(server: httpx.Client, path: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = server.get(path).raise_for_status().json()
    return found


@pytest.mark.parametrize(("path", "name"), LISTS.items(), ids=LISTS)
def test_every_list_has_rows(server: httpx.Client, loading: float, path: str, name: str) -> None:
    assert answer(server, path)[name]


def test_it_is_there_before_anybody_has_read_the_page(loading: float) -> None:
    print(f"{loading:.1f} s of processors")
    assert loading < CLIFF_SECONDS


def test_every_run_has_ended_and_every_record_has_arrived(
    server: httpx.Client, loading: float, recorded: list[Mapping[str, Any]]
) -> None:
    last: dict[str, int] = {}
    for request in recorded[1:]:
        if request["path"].endswith("/batches"):
            last[request["path"].split("/")[-2]] = request["body"]["last_seq"]

    runs = answer(server, "/runs?limit=500")["runs"]
    streams = {one: answer(server, f"/streams/{one}") for one in last}

    assert len(runs) == recorded[0]["runs"]
    assert {run["status"] for run in runs} == {"finished"}
    assert {one: found["acked_seq"] for one, found in streams.items()} == last
    assert {(found["num_lost"], found["num_rejected"]) for found in streams.values()} == {(0, 0)}


def test_the_four_runs_have_noise_scales_with_decisions(server: httpx.Client, loading: float) -> None:
    runs = {run["name"]: run for run in answer(server, "/runs?project=demo&limit=500")["runs"]}

    for name in ("digits-b256", "digits-b2048", "characters-b16", "characters-b128"):
        assert runs[name]["noise_scale"]["value"] is not None, name
        assert answer(server, f"/runs/{runs[name]['id']}/recommendation")["decision"], name


def test_the_sweep_of_the_demo_has_its_fit_and_its_trials_are_runs(server: httpx.Client, loading: float) -> None:
    [sweep] = answer(server, "/sweeps?project=demo&kind=sweep&task=digits sweep")["sweeps"]

    trials = answer(server, f"/sweeps/{sweep['id']}")["runs"]
    fits = [one["fit"] for one in answer(server, f"/sweeps/{sweep['id']}/critical-batch")["targets"]]

    assert trials
    assert all(one["is_stored"] for one in trials)
    assert any(fits)


def rows(server: httpx.Client) -> str:
    """Everything that the lists say, as one fingerprint; what a server judges by itself in between is left out."""
    judged = ("decision", "updated_at", "calibration", "critical_batches", "sureness", "odds")
    said = [answer(server, path) for path in LISTS if path != "/comparison"]
    text = json.dumps(said, sort_keys=True, default=str)
    kept = json.loads(text, object_pairs_hook=lambda pairs: {k: v for k, v in pairs if not k.startswith(judged)})
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def test_a_second_time_nothing_is_new(server: httpx.Client, loading: float, capsys: pytest.CaptureFixture[str]) -> None:
    before = rows(server)

    status = main(["demo", "--data"])

    said = capsys.readouterr().out
    assert (status, rows(server)) == (0, before)
    assert "nothing is new" in said


def test_what_a_team_has_set_since_stays(server: httpx.Client, loading: float) -> None:
    server.put("/projects/demo/defaults", json={"device_hour_price": 3.5}).raise_for_status()

    assert main(["demo", "--data"]) == 0
    assert answer(server, "/projects/demo/defaults")["device_hour_price"] == 3.5


def test_a_run_that_was_deleted_stays_deleted_and_the_rest_is_there(
    server: httpx.Client, loading: float, capsys: pytest.CaptureFixture[str]
) -> None:
    [run] = answer(server, "/runs?q=characters-b16&project=demo")["runs"]
    server.delete(f"/runs/{run['id']}").raise_for_status()

    status = main(["demo", "--data"])

    assert status == 1
    assert "left out" in capsys.readouterr().out
    assert server.get(f"/runs/{run['id']}").status_code in (404, 410)
    assert answer(server, "/runs?q=digits-b256&project=demo")["runs"]


def test_what_a_server_has_refused_altogether_was_not_there_already() -> None:
    refused = demo.Loaded(left_out=["left out: this needs a key"])

    assert demo.told(refused, 0.1) == "nothing was loaded"
    assert demo.told(demo.Loaded(num_known=1200), 0.1) == "all 1,200 records were there already: nothing is new"


def test_without_data_the_command_says_what_it_could_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 2
    assert "demo --data" in capsys.readouterr().err


def test_the_file_is_small_and_says_where_it_comes_from(recorded: list[Mapping[str, Any]]) -> None:
    provenance = recorded[0]

    assert requests_file().stat().st_size < MOST_BYTES
    assert provenance["format"] == demo.FORMAT
    assert provenance["made_by"] == "python examples/record_demo_data.py"
    assert (Path(__file__).parents[2] / "examples/record_demo_data.py").is_file()


def test_the_file_names_no_machine_and_no_person(recorded: list[Mapping[str, Any]]) -> None:
    text = json.dumps(recorded)

    assert not [word for word in ("127.0.0.1", "/home/", "/root/", "/tmp/", '"host"') if word in text]


def test_a_server_that_does_not_answer_is_one_sentence(monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--data", "--url", "http://127.0.0.1:9"]) == 1
    assert "noisescale up" in capsys.readouterr().err
