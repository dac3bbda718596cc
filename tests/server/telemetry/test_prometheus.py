"""A real Prometheus, as Debian packages it, scrapes a real server; promtool checks the rules that ship."""

import asyncio
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from keys_of_tests import bearer
from noisescale_dashboard.app import mount
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.platform.engine import create_engine
from principals import OURS, SECRET, new_key
from served_app import free_port, served_app
from stored_runs import resolved, store_run

FOLDER = Path(__file__).parents[3] / "examples" / "monitoring"
SECONDS = 60.0

pytestmark = [pytest.mark.slow, pytest.mark.processes]


@pytest.mark.parametrize(
    "command",
    [
        ["check", "rules", "rules.yml"],
        ["test", "rules", "rules_test.yml"],
        ["check", "config", "--syntax-only", "prometheus.yml"],
    ],
    ids=" ".join,
)
def test_promtool_finds_no_fault(command: list[str]) -> None:
    done = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_finds_no_fault_in_what_is_scraped(place: tuple[str, str, str]) -> None:
    url, key, _ = place
    text = httpx.get(f"{url}/metrics", headers=bearer(key)).text

    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(new_database: Callable[[], str]) -> Iterator[tuple[str, str, str]]:
    """Address of a team's server, a metrics key, and the id of a live run."""
    database, port = new_database(), free_port()
    url = f"http://localhost:{port}"
    team: dict[str, Any] = {"auth": "required", "secret_key": SECRET, "public_url": url, "local_token": None}
    with served_app(database, port=port, extend=mount, **team):
        key, run_id = asyncio.run(planted(database))
        yield url, key, run_id


async def planted(database: str) -> tuple[str, str]:
    """A metrics key, and the id of a live run."""
    engine = create_engine(database, pool_size=1)
    store: Any = SimpleNamespace(state=SimpleNamespace(sessions=session_factory(engine)))
    run_id = await store_run(store, project=OURS, name="scraped", **resolved())
    key = await new_key(store, "metrics", OURS)
    await engine.dispose()
    return key, str(run_id)


@pytest.fixture(scope="module")
def prometheus(place: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Prometheus that scrapes it each second by the files of examples/monitoring."""
    url, key, _ = place
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    (folder / "key").write_text(key)
    (folder / "rules.yml").write_text((FOLDER / "rules.yml").read_text())
    shipped = (FOLDER / "prometheus.yml").read_text()
    changed = shipped.replace("15s", "1s").replace("scheme: https", "scheme: http")
    changed = changed.replace("/etc/prometheus/noisescale.key", "key").replace("noisescale.example.com", url[7:])
    (folder / "prometheus.yml").write_text(changed)
    command = ["prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "log").open("w") as said:
        process = subprocess.Popen([*command, "--storage.tsdb.path=data"], cwd=folder, stdout=said, stderr=said)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def ask(prometheus: str, path: str, **query: str) -> Any:
    answer = httpx.get(f"{prometheus}/api/v1/{path}", params=query)
    return answer.json()["data"] if answer.status_code == 200 else None


def until(prometheus: str, path: str, is_there: Callable[[Any], bool], **query: str) -> Any:
    """What Prometheus says once it says enough."""
    end = time.monotonic() + SECONDS
    found: Any = None
    while time.monotonic() < end:
        try:
            found = ask(prometheus, path, **query)
        except httpx.TransportError:
            found = None
        if found is not None and is_there(found):
            return found
        time.sleep(0.5)
    raise AssertionError(f"{path} {query}: {found}")


def test_it_is_scraped_by_a_key_that_reads_nothing_else(place: tuple[str, str, str], prometheus: str) -> None:
    _, _, run_id = place

    (target,) = until(
        prometheus, "targets", lambda found: found["activeTargets"][:1] and found["activeTargets"][0]["health"] == "up"
    )["activeTargets"]
    scale = until(prometheus, "query", lambda found: bool(found["result"]), query="noisescale_run_noise_scale_examples")
    joined = "noisescale_run_batch_size_examples * on(run) group_left(name, project) noisescale_run_info"
    named = until(prometheus, "query", lambda found: bool(found["result"]), query=joined)["result"][0]

    assert target["lastError"] == ""
    assert (scale["result"][0]["metric"]["run"], scale["result"][0]["value"][1]) == (run_id, "500")
    assert (named["metric"]["name"], named["metric"]["project"], named["value"][1]) == ("scraped", OURS, "250")


def test_every_query_of_the_dashboard_is_one_that_prometheus_takes(prometheus: str) -> None:
    until(prometheus, "query", lambda found: bool(found["result"]), query="noisescale_live_runs")
    text = (FOLDER / "dashboard.json").read_text()
    asked = re.findall(r'"expr": "(.*)"', text)

    for expression in asked:
        query = expression.replace('\\"', '"').replace("$__rate_interval", "1m").replace("$project", ".*")
        assert ask(prometheus, "query", query=query) is not None, query


def test_the_rules_are_loaded_and_healthy(prometheus: str) -> None:
    groups = until(
        prometheus,
        "rules",
        lambda found: found["groups"] and all(one["lastEvaluation"][:2] == "20" for one in found["groups"]),
    )["groups"]

    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
    assert {rule["name"] for rule in rules} >= {"NoisescaleDown", "NoisescaleBatchFarOff"}
