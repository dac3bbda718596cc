"""`noisescale mcp` as an assistant starts it: ten questions of users, each answered by a tool within two seconds.

The conversation is recorded in agents_conversation.json: what was asked, which tool was called and what it answered.
A server is asked again, and must answer so still: the same structure, numbers to a per cent, words as they were.
Sentences of the advice have tests of their own, and are only looked for here.
"""

import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

import noisescale
from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from noisescale.agents import server as serving
from noisescale.agents.calls import Caller
from noisescale.agents.explaining import FORMULAS
from noisescale.agents.server import make_server
from noisescale.commands import main
from noisescale.config import Config
from runs_of_known_noise import stored_run, wait_until_judged
from served_app import free_port

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
CONVERSATION = Path(__file__).with_name("agents_conversation.json")
COMMAND = str(Path(sys.executable).with_name("noisescale"))
PROJECT = "assistants"
MOST_SECONDS = 2.0
CLOSE = 0.01
SWEEP = "digits, six batch sizes"
S_MIN, B_CRIT, SEEDS = 100.0, 256.0, 3
"""Of the sweep: S = S_min (1 + B_crit / B), with a scatter of 2 %."""

# fmt: off
SENTENCES = (
    "reason", "headline", "effect", "warnings", "next_step", "text", "limits_text", "critical_batch_text", "price",
    "assumes", "formula", "worked", "note", "notices", "schedule", "source", "rule", "refusal", "findings",
)
# fmt: on
"""Fields whose words have tests of their own."""
TIMES = ("last_data_at",)


@pytest.fixture(scope="module")
def runs(live_server: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, noisescale.Run]:
    """Too small and too large a batch, one too short to say, one of another task; and a sweep of the first task."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_URL", live_server)
        patch.setenv("NOISESCALE_API_KEY", LOCAL_TOKEN)
        patch.setenv("NOISESCALE_DIR", str(tmp_path_factory.mktemp("runs")))
        planned = {"planned_steps": 2000, "num_devices": 4, "usd_per_device_hour": 2.5}
        made: dict[str, dict[str, Any]] = {
            "mlp-b64": {"noise_scale": 3000.0, "config": {"hidden": 64}, **planned},
            "mlp-b4096": {"steps": 300, "noise_scale": 20.0, "batch": 4096, "noise": 0.01, "config": {"hidden": 32}},
            "only-smoke": {"steps": 3},
            "tiny-lm": {"task": "text", "unit": "tokens", "example": "sequence", "units_per_example": 1024},
        }
        found = {
            name: stored_run(live_server, AS_LOCAL_USER, name, **{"project": PROJECT, **settings})
            for name, settings in made.items()
        }
    wait_until_judged(live_server, AS_LOCAL_USER, [run.id for name, run in found.items() if name != "only-smoke"])
    make_sweep(live_server)
    return found


def make_sweep(url: str) -> None:
    sweep = {"project": PROJECT, "task": "sweep", "name": SWEEP, "targets": [0.5]}
    curves = [curve(batch, seed) for batch in (16, 64, 256, 1024, 4096, 16384) for seed in range(SEEDS)]
    with httpx.Client(base_url=f"{url}/api/v1", headers=AS_LOCAL_USER) as http:
        sweep_id = http.post("/sweeps", json=sweep).raise_for_status().json()["id"]
        http.post(f"/sweeps/{sweep_id}/runs", json={"runs": curves}).raise_for_status()


def curve(batch: int, seed: int) -> dict[str, Any]:
    """A loss that falls in a straight line and reaches its target after the steps of the law."""
    steps = S_MIN * (1 + B_CRIT / batch) * (1 + 0.02 * (seed - 1))
    at = [round(i * steps / 50) for i in range(76)]
    return {
        "batch_size": batch, "lr": 0.1, "seed": seed, "status": "complete", "steps": at,
        "values": [1.0 - 0.5 * step / steps for step in at],
    }  # fmt: skip


@dataclass(frozen=True)
class Assistant:
    """A scripted client of the official SDK; its loop runs in a thread of its own."""

    portal: BlockingPortal
    client: Client

    def call(self, tool: str, **arguments: Any) -> types.CallToolResult:
        return self.portal.call(self.client.call_tool, tool, arguments)

    def tools(self) -> list[types.Tool]:
        return self.portal.call(self.client.list_tools).tools


@contextmanager
def assistant_of(server: Any, mode: str = "auto") -> Iterator[Assistant]:
    """An assistant of a process, an address or a server in memory; "legacy": one of an older protocol."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server, mode=mode)) as client:
        yield Assistant(portal, client)


def process(url: str, folder: Path) -> StdioServerParameters:
    """`noisescale mcp` as an assistant's settings name it."""
    environment = {"NOISESCALE_URL": url, "NOISESCALE_API_KEY": LOCAL_TOKEN, "NOISESCALE_DIR": str(folder)}
    return StdioServerParameters(command=COMMAND, args=["mcp"], env=environment)


@pytest.fixture(scope="module")
def assistant(
    live_server: str, runs: Mapping[str, noisescale.Run], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Assistant]:
    """One that has started `noisescale mcp` and speaks to it over standard input and output."""
    with assistant_of(process(live_server, tmp_path_factory.mktemp("assistant"))) as opened:
        yield opened


def text_of(found: types.CallToolResult) -> str:
    (content,) = found.content
    assert isinstance(content, types.TextContent)
    return content.text


def forgotten(value: Any, runs: Mapping[str, noisescale.Run], url: str) -> Any:
    """An answer without addresses, and with the names of runs in place of their ids."""
    text = json.dumps(value, ensure_ascii=False).replace(url, "SERVER")
    for name, run in runs.items():
        text = text.replace(run.id, f"id of {name}")
    return json.loads(re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "an id", text))


def differences(found: Any, recorded: Any, at: str = "") -> list[str]:
    """Where an answer is not what was recorded."""
    name = re.sub(r"\[\d+\]", "", at).rpartition(".")[2]
    if name in TIMES or (name in SENTENCES and type(found) is type(recorded) and bool(found) == bool(recorded)):
        return []
    if isinstance(found, dict) and isinstance(recorded, dict) and found.keys() == recorded.keys():
        return [one for key in found for one in differences(found[key], recorded[key], f"{at}.{key}")]
    if isinstance(found, list) and isinstance(recorded, list) and len(found) == len(recorded):
        pairs = enumerate(zip(found, recorded, strict=True))
        return [one for i, (new, old) in pairs for one in differences(new, old, f"{at}[{i}]")]
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, recorded))
    is_same = math.isclose(found, recorded, rel_tol=CLOSE, abs_tol=1e-9) if numbers else found == recorded
    return [] if is_same else [f"{at}: {found!r}, recorded {recorded!r}"]


@pytest.mark.slow
def test_ten_questions_are_answered_as_recorded_and_each_within_two_seconds(
    assistant: Assistant, live_server: str, runs: Mapping[str, noisescale.Run], pytestconfig: pytest.Config
) -> None:
    import jsonschema  # with the grammar of addresses, which takes a second to build

    recorded = json.loads(CONVERSATION.read_text())
    schemas = {tool.name: tool.output_schema for tool in assistant.tools()}
    now, wrong, seconds = [], [], []
    for turn in recorded:
        began = time.monotonic()
        found = assistant.call(turn["tool"], **turn["arguments"])
        seconds.append(time.monotonic() - began)
        jsonschema.validate(found.structured_content, schemas[turn["tool"]])
        text = text_of(found)
        answer = forgotten(found.structured_content, runs, live_server)
        now.append({**turn, "text": forgotten(text, runs, live_server), "answer": answer})
        wrong += [f"{turn['question']} {one}" for one in differences(answer, turn["answer"])]
        wrong += [f"{turn['question']} nothing of {word!r}" for word in turn["says"] if word not in text]
    written = pytestconfig.cache.mkdir("noisescale") / CONVERSATION.name
    written.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n")

    assert len(recorded) >= 10
    assert max(seconds) < MOST_SECONDS
    assert wrong == [], f"where the new answers are right, record them: cp {written} {CONVERSATION}"


@pytest.mark.slow
def test_what_is_explained_is_computed_again(assistant: Assistant, live_server: str) -> None:
    found = assistant.call("explain_number", run="mlp-b64")

    answer = found.structured_content
    rows = httpx.get(f"{live_server}{answer['rows']['address']}", headers=AS_LOCAL_USER).json()["points"]
    trace, square = rows["trace_cov"][-1], rows["grad_sq_norm"][-1]
    assert trace / square == pytest.approx(answer["value"]["value"], rel=1e-4)
    assert answer["worked"].startswith(f"tr Σ {trace:.6g} ÷ |G|² {square:.6g} = ")
    assert sum(rows["num_updates"][-1:]) == answer["rows"]["num_updates"]


@pytest.mark.parametrize("number", FORMULAS)
def test_every_number_has_a_page_of_the_documentation(number: Any) -> None:
    assert (ROOT / FORMULAS[number].page).exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [name for name in FORMULAS if name != "noise_scale"])
def test_every_number_of_a_run_is_explained_with_its_value(assistant: Assistant, live_server: str, number: str) -> None:
    found = assistant.call("explain_number", run="mlp-b64", what=number)

    answer = found.structured_content
    assert answer["value"]["value"] is not None
    assert answer["rows"]["last_step"] == 399
    assert answer["documentation"] in text_of(found)


@pytest.mark.slow
def test_what_is_not_known_is_said_and_not_made_up(assistant: Assistant) -> None:
    scale = assistant.call("explain_number", run="only-smoke")
    odds = assistant.call("explain_number", run="only-smoke", what="probability")
    run = assistant.call("get_run", run="only-smoke")

    assert "noise_scale is not known for this run: too few updates so far" in text_of(scale)
    assert "probability is not known for this run: Only 3 measured steps so far" in text_of(odds)
    assert "value" not in run.structured_content["noise_scale"]
    assert run.structured_content["noise_scale"]["reason"] == "too few updates so far"


@pytest.mark.slow
def test_a_long_series_is_sampled_and_says_so(assistant: Assistant) -> None:
    found = assistant.call("noise_scale", run="mlp-b64", points=200)
    whole = assistant.call("noise_scale", run="only-smoke")

    answer = found.structured_content
    assert {len(column) for column in answer["points"].values()} == {200}
    assert "200 points over steps 0 to 399; sampled: each point stands for 2 steps" in text_of(found)
    assert "every measured step is a point" in text_of(whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("get_run", {"run": "nobody's"}, 'no run is called "nobody\'s"'),
        ("get_run", {"run": "mlp-b"}, "2 runs are called 'mlp-b': give the id of one, mlp-b4096 ("),
        ("get_run", {"run": "00000000-0000-4000-8000-000000000000"}, "no run has the id 00000000-0000-4000-8000"),
        ("recommendation", {"run": "only-smoke", "preference": 7}, "preference must be between 0.001 and 0.999, got 7"),
        ("recommendation", {"run": "only-smoke", "preference": 0.5, "examples_per_step": 2}, "give one of them"),
        (
            "noise_scale",
            {"run": "only-smoke", "points": 500},
            "points: Input should be less than or equal to 200, got 500",
        ),
        ("list_runs", {"project_name": "x"}, "project_name: Extra inputs are not permitted, got 'x'"),
        ("plan_within_limits", {"max_hours": 2}, "run must be given, or task with its project, and not both"),
        ("plan_within_limits", {"task": "digits"}, "project of task 'digits' is missing"),
        ("plan_within_limits", {"run": "only-smoke"}, "Only 3 measured steps so far"),
        ("recommend_before_training", {}, "tokens is missing"),
        ("recommend_before_training", {"tokens": 1e9, "optimizer": "muon"}, "optimizer must be one of adam and adamw"),
        ("fit_sweep", {"sweep": "no such sweep"}, f"no sweep is called 'no such sweep'; there are {SWEEP} ("),
        ("change_run", {"run": "only-smoke", "name": "x"}, "Unknown tool: change_run"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence(
    assistant: Assistant, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    found = assistant.call(tool, **arguments)

    assert found.is_error
    assert sentence in text_of(found)
    assert "Traceback" not in text_of(found)


def test_without_a_server_only_published_sweeps_answer() -> None:
    nobody = make_server(Caller.of_process(lambda: Config(url="http://127.0.0.1:9")))
    with assistant_of(nobody) as assistant:
        published = assistant.call("recommend_before_training", tokens=20e9, sequence_length=2048)
        listed = assistant.call("list_runs")

    assert published.structured_content["recommended_batch_size"] > 0
    assert published.structured_content["source"] == "published"
    assert listed.is_error
    assert text_of(listed).startswith("no answer from http://127.0.0.1:9")
    assert "noisescale up" in text_of(listed)


def test_a_key_that_is_none_is_not_repeated(live_server: str) -> None:
    with assistant_of(
        make_server(Caller.of_process(lambda: Config(url=live_server, api_key="ns_r_secret\nline")))
    ) as assistant:
        found = assistant.call("list_runs")

    assert text_of(found).startswith("the key holds characters that no key has")
    assert "secret" not in text_of(found)


@pytest.mark.slow
def test_changes_are_made_where_it_was_started_for_them(live_server: str, runs: Mapping[str, noisescale.Run]) -> None:
    caller = Caller.of_process(lambda: Config(url=live_server, api_key=LOCAL_TOKEN))
    ids = [runs["mlp-b64"].id, runs["mlp-b4096"].id]
    with assistant_of(make_server(caller, allows_changes=True)) as assistant:
        changed = assistant.call("change_run", run="only-smoke", remarks="only a try", tags=["try"])
        made = assistant.call(
            "create_sweep", project=PROJECT, task="digits", run_ids=ids, name="from an assistant", targets=[0.4]
        )
        fitted = assistant.call("fit_sweep", sweep="from an assistant")
        nothing = assistant.call("change_run", run="only-smoke")

    stored = httpx.get(f"{live_server}/api/v1/runs/{runs['only-smoke'].id}", headers=AS_LOCAL_USER).json()
    assert (stored["remarks"], stored["tags"]) == ("only a try", ["try"])
    assert text_of(changed) == "only-smoke: tags is ['try'], remarks is 'only a try'"
    assert text_of(made) == "Made sweep from an assistant of 2 runs of assistants/digits."
    assert fitted.structured_content["targets"][0]["batch_sizes"] == [64, 4096]
    assert text_of(nothing) == "give one of name, tags, remarks, archived: there is nothing to change"


@pytest.mark.slow  # a process more; every tool is asked over HTTP with each key in test_agents_matrix.py
def test_the_same_answers_come_over_http(live_server: str, runs: Mapping[str, noisescale.Run], tmp_path: Path) -> None:
    port = free_port()
    environment = os.environ | {"NOISESCALE_URL": live_server, "NOISESCALE_DIR": str(tmp_path)}
    process = subprocess.Popen([COMMAND, "mcp", "--http", str(port)], env=environment)
    try:
        wait_for(port, process)
        found = [over_http(f"http://127.0.0.1:{port}/mcp", mode) for mode in ("auto", "legacy")]
    finally:
        process.terminate()
        process.wait(timeout=10)

    assert found == [(runs["mlp-b64"].id, False)] * 2


def over_http(address: str, mode: str) -> tuple[str, bool]:
    """The id of a run as an assistant reads it, and whether it may change one."""
    http = httpx2.AsyncClient(headers=AS_LOCAL_USER)
    with assistant_of(streamable_http_client(address, http_client=http), mode) as assistant:
        found = assistant.call("get_run", run="mlp-b64").structured_content["id"]
        changes = "change_run" in {tool.name for tool in assistant.tools()}
        assistant.portal.call(http.aclose)
    return found, changes


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None
        try:
            httpx.get(f"http://127.0.0.1:{port}/mcp", timeout=1)
        except httpx.HTTPError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("nobody listens")


def test_without_the_library_the_command_says_how_to_get_it(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    assert main(["mcp"]) == 2

    assert "pip install './client[mcp]'" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "allows_changes"), [([], False), (["--allow-changes"], True)])
@pytest.mark.parametrize("over_http", [False, True])
def test_nothing_may_be_changed_unless_the_command_says_so(monkeypatch, options, allows_changes, over_http) -> None:
    served: list[dict[str, Any]] = []
    for name in ("serve_stdio", "serve_http"):
        monkeypatch.setattr(serving, name, lambda config, **how: served.append(how))

    assert main(["mcp", *options, *(["--http", "8765"] if over_http else [])]) == 0

    assert served == [{"allows_changes": allows_changes} | ({"port": 8765} if over_http else {})]


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], port: str) -> None:
    with pytest.raises(SystemExit):
        main(["mcp", "--http", port])

    assert f"must be a port from 1 to 65535, got '{port}'" in capsys.readouterr().err


@pytest.mark.slow
def test_an_assistant_reads_what_each_tool_is_for_in_few_words(assistant: Assistant) -> None:
    tools = assistant.tools()

    page = (ROOT / "docs/agents.md").read_text()
    assert [tool.name for tool in tools if f"`{tool.name}`" not in page] == []
    assert all(tool.description and tool.output_schema for tool in tools)
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)
    assert sum(len(json.dumps(tool.input_schema)) + len(tool.description or "") for tool in tools) < 12_000
    assert '"title":' not in json.dumps([tool.output_schema for tool in tools])
    assert "do not make one up" in (assistant.client.instructions or "")
