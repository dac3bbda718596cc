import argparse
import importlib.util
from pathlib import Path

import pytest

from noisescale_lab.reproduce import command as reproduce
from noisescale_lab.reproduce.claim import campaign
from noisescale_lab.reproduce.claim.report import files
from noisescale_lab.reproduce.claim.task_result import write
from reproduced_tasks import make_result


@pytest.fixture(autouse=True)
def without_quadratics(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take seconds, and have tests of their own."""
    monkeypatch.setattr(campaign, "check_quadratics", lambda: ())


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    reproduce.register(parser.add_subparsers())
    parsed = parser.parse_args(["reproduce", *arguments])
    status: int = parsed.run(parsed)
    return status


@pytest.mark.slow
def test_the_command_prints_the_figures_of_what_is_there_and_writes_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(make_result("digits_mlp"), tmp_path / "digits_mlp.json")

    status = command("--quick", "--no-server", "--tasks", "digits_mlp", "--folder", str(tmp_path))

    shown = capsys.readouterr().out
    assert status == 0
    assert "Nothing is sent." in shown
    assert "fewer than five tasks: no figures" in shown
    assert (tmp_path / "summary" / "targets.csv").exists()
    assert f"With figures: {tmp_path / 'report.html'}" in shown
    assert "digits_mlp" in (tmp_path / "report.html").read_text()


def test_without_a_dashboard_there_is_no_report_and_the_way_to_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "entry_points", lambda **_: ())
    write(make_result("digits_mlp"), tmp_path / "digits_mlp.json")

    command("--quick", "--no-server", "--tasks", "digits_mlp", "--folder", str(tmp_path))

    assert "pip install ./dashboard, and the same command draws them" in capsys.readouterr().out
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "digits"], "tasks has no 'digits': known are"),
        (["--processes", "0"], "processes must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named_with_the_way_out(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = command("--no-server", "--folder", str(tmp_path / "new"), *arguments)

    assert status == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_the_environment_of_make_demo_holds_what_the_command_needs() -> None:
    lock = (Path(__file__).parents[4] / "locks" / "development.txt").read_text()

    assert [one for one in reproduce.PACKAGES.values() if one != "torch" and f"\n{one}==" not in lock] == []


def test_a_missing_package_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else find_spec(name))

    status = command("--no-server")

    assert status == 2
    assert "needs scikit-learn: pip install scikit-learn" in capsys.readouterr().err
