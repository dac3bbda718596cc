"""`noisescale runs`, `show`, `open`, `recommend` and `report` of a run, asked of a real server by its name."""

import json
import re
import sys
import webbrowser
from collections.abc import Mapping

import httpx
import pytest

import noisescale
from app_in_process import AS_LOCAL_USER, LOCAL_TOKEN
from noisescale.commands import main
from runs_of_known_noise import stored_run, wait_until_judged

pytestmark = pytest.mark.processes

PROJECT = "terminal"
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def runs(live_server: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, noisescale.Run]:
    """Runs with too small and too large a batch, one too short to say, and one of tokens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOISESCALE_URL", live_server)
        patch.setenv("NOISESCALE_API_KEY", LOCAL_TOKEN)
        patch.setenv("NOISESCALE_DIR", str(tmp_path_factory.mktemp("runs")))
        made = {
            "mnist-small": {"noise_scale": 3000.0, "planned_steps": 2000},
            "mnist-large": {"noise_scale": 20.0, "batch": 4096, "noise": 0.01},
            "mnist-short": {"steps": 3},
            "tokens-of-text": {
                "unit": "tokens",
                "example": "sequence",
                "units_per_example": 1024,
                "noise_scale": 800.0,
            },
        }
        found = {
            name: stored_run(live_server, AS_LOCAL_USER, name, project=PROJECT, **settings)
            for name, settings in made.items()
        }
        wait_until_judged(live_server, AS_LOCAL_USER, [run.id for name, run in found.items() if name != "mnist-short"])
        return found


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command prints that succeeds."""
    status = main(arguments)
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    return printed.out


def asked(live_server: str, path: str) -> dict:
    return httpx.get(f"{live_server}/api/v1{path}", headers=AS_LOCAL_USER).json()


def test_runs_says_of_each_where_it_stands_and_what_to_do(live_server, runs, capsys) -> None:
    lines = said(capsys, "runs", "--project", PROJECT).splitlines()

    rows = {line.split()[0]: line for line in lines[1:5]}
    row = asked(live_server, f"/runs/{runs['mnist-small'].id}")
    assert list(rows) == ["tokens-of-text", "mnist-short", "mnist-large", "mnist-small"]
    assert re.search(r"mnist-small +\w{8}  terminal/digits  finished  400 of 2,000 ", rows["mnist-small"])
    assert f"  64  raise to {row['decision']['batch_size']:,} (" in rows["mnist-small"]
    assert "lower to" in rows["mnist-large"]
    assert "not resolved" in rows["mnist-short"]
    assert "undecided" in rows["mnist-short"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["mnist-"], {"mnist-small", "mnist-large", "mnist-short"}),
        (["--state", "running"], set()),
        (["--state", "finished", "--state", "silent"], {"mnist-small", "mnist-large", "mnist-short", "tokens-of-text"}),
        (["--task", "no such task"], set()),
        (["--order", "saving", "--limit", "1"], {"mnist-large"}),
    ],
)
def test_runs_are_filtered_by_text_state_and_task(live_server, runs, capsys, filters, found) -> None:
    page = json.loads(said(capsys, "runs", *filters, "--project", PROJECT, "--json"))

    assert {run["name"] for run in page["runs"]} == found


def test_a_list_without_a_run_says_so(live_server, runs, capsys) -> None:
    assert said(capsys, "runs", "--project", "nothing here") == f"No run fits at {live_server}.\n"


def test_a_short_list_says_how_many_more_there_are(live_server, runs, capsys) -> None:
    assert "2 of 4 runs: --limit shows more" in said(capsys, "runs", "--project", PROJECT, "--limit", "2")


def test_show_draws_the_course_and_gives_the_recommendation_and_the_page(live_server, runs, capsys) -> None:
    run_id = runs["mnist-small"].id
    advice = asked(live_server, f"/runs/{run_id}/recommendation?examples_per_step=500")

    out = said(capsys, "show", "mnist-small", "--examples-per-step", "500")

    assert out.startswith(f"mnist-small  {PROJECT}/digits  {run_id}\n  state          finished, 400 of 2,000 steps\n")
    assert re.search(r"\n  noise scale    [\d,]+ images \[[\d,]+, [\d,]+\], resolved, z = [\d.]+\n", out)
    assert len(re.findall(r"\n  (?:noise scale|loss) +[▁▂▃▄▅▆▇█ ]{50,60}  [\d.,]+ … [\d.,]+\n", out)) >= 1
    assert re.search(r"\n  loss +█.*▁  2\.\d+ … 0\.3\d*\n", out)
    assert f"\n\n{advice['headline']}" in out
    assert "\n  why            " in out.partition(advice["headline"])[2]
    assert "cheaper with a probability of" in " ".join(out.split())
    assert out.endswith(f"\n\n{live_server}/runs/{run_id}\n")


def test_show_says_tokens_of_a_run_that_counts_them(runs, capsys) -> None:
    out = said(capsys, "show", "tokens-of-text")

    assert "\n  batch          64 sequences = 65,536 tokens\n" in out
    assert re.search(r"noise scale    [\d,]+ sequences \[[\d,]+, [\d,]+\] = [\d,]+ tokens, resolved", out)


@pytest.mark.parametrize("short", ["mnist-sm", "MNIST-SM", "id[:8]", "id", "page"])
def test_a_run_is_found_by_the_beginning_of_its_name_or_id_and_by_its_page(live_server, runs, capsys, short) -> None:
    run_id = runs["mnist-small"].id
    named = {"id[:8]": run_id[:8], "id": run_id, "page": f"{live_server}/runs/{run_id}?x=time"}.get(short, short)

    assert json.loads(said(capsys, "show", named, "--json"))["run"]["id"] == run_id


def test_a_beginning_that_several_share_is_answered_by_their_ids(runs, capsys) -> None:
    assert main(["show", "mnist-"]) == 1

    error = capsys.readouterr().err
    assert error.startswith("noisescale show: 3 runs are called 'mnist-': give the id of one, ")
    assert runs["mnist-small"].id in error
    assert runs["mnist-large"].id in error


def test_a_name_that_no_run_has_is_answered_by_those_that_are_near(runs, capsys) -> None:
    assert main(["show", "nist-small"]) == 1

    assert f"there are mnist-small ({runs['mnist-small'].id})" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "open", "recommend", "report"])
def test_a_run_that_is_not_there_is_one_sentence(runs, capsys, command) -> None:
    assert main([command, "nobody's run"]) in (1, 2)

    error = capsys.readouterr().err
    assert 'no run is called "nobody\'s run"' in error
    assert "Traceback" not in error


@pytest.mark.parametrize("arguments", [["runs"], ["show", "a"], ["open", "a"], ["recommend", "a"], ["report", "a"]])
def test_without_a_server_there_is_one_sentence_with_the_way_out(capsys, arguments) -> None:
    assert main([*arguments, "--url", NOBODY]) == 1

    error = capsys.readouterr().err
    assert f"no answer from {NOBODY}" in error
    assert "noisescale up" in error


def test_a_wrong_key_is_answered_in_the_servers_words(live_server, capsys, monkeypatch) -> None:
    monkeypatch.setenv("NOISESCALE_API_KEY", "ns_r_wrong")

    assert main(["runs"]) == 1

    assert "noisescale runs: this needs a key or a login" in capsys.readouterr().err


def test_open_opens_the_page_and_prints_its_address(live_server, runs, capsys, monkeypatch) -> None:
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or False)

    out = said(capsys, "open", "mnist-short")

    page = f"{live_server}/runs/{runs['mnist-short'].id}"
    assert opened == [page]
    assert out == f"{page}\nNo browser can be opened from here: open the address where there is one.\n"


def test_recommend_takes_a_run_and_what_one_values(live_server, runs, capsys) -> None:
    advice = asked(live_server, f"/runs/{runs['mnist-small'].id}/recommendation?preference=0.8&max_steps=500")

    out = said(capsys, "recommend", "mnist-small", "--preference", "time", "--max-steps", "500")

    assert out.startswith(advice["headline"])
    assert "\n  why            " in out
    assert advice["reason"] in " ".join(out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["mnist-small", "--tokens", "1e9"],
            "--tokens is of a model that is only planned, and 'mnist-small' is a run",
        ),
        (["mnist-small", "--mixture-of-experts"], "--mixture-of-experts is of a model that is only planned"),
        (["--tokens", "1e9", "--max-hours", "3"], "--max-hours is a question about a run: name the run, too"),
        (["mnist-small", "--max-hours", "-1"], "max_hours must be a positive number, got -1"),
        (["mnist-small", "--preference", "0.5", "--examples-per-step", "3"], "give one of them"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(runs, capsys, arguments, message) -> None:
    assert main(["recommend", *arguments]) == 2

    assert message in capsys.readouterr().err


def test_report_takes_a_name(runs, capsys, tmp_path) -> None:
    assert main(["report", "mnist-small", "-o", str(tmp_path)]) == 0

    assert (tmp_path / f"report-{runs['mnist-small'].id[:8]}.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_want_them(runs, capsys, monkeypatch, environment, is_coloured) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert "\x1b[" not in said(capsys, "show", "mnist-short")

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)

    assert ("\x1b[" in said(capsys, "show", "mnist-short")) is is_coloured
