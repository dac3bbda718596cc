"""The advice is tried part by part: what is in the folder is not tried again, and means the same when it is read."""

import csv
import json

import pytest

from noisescale_core.errors import ConfigError
from noisescale_lab.reproduce.advice import command, sweep, task_advice
from noisescale_lab.reproduce.advice import command as campaigns
from noisescale_lab.reproduce.advice.command import AdviceCampaign, run_campaign
from noisescale_lab.reproduce.advice.sweep import Reference, Tuned
from noisescale_lab.reproduce.advice.tables import as_text, tables, write_files
from noisescale_lab.reproduce.advice.task_advice import ReplayEffort, try_advice

TUNED = tuple(Tuned(batch, 0.8, steps) for batch, steps in ((8, 30.0), (32, 12.0), (256, 8.0)))
SWEPT = Reference("digits_softmax", 1.2, TUNED, 8.0, 20.0)
LITTLE = ReplayEffort(policies=("keep", "Seesaw"), sweep_seeds=(0,), replay_seeds=(500,))


@pytest.fixture
def swept(monkeypatch):
    """Every task is taken for swept."""

    def complete(file, names, seeds):
        return dict.fromkeys(names, SWEPT)

    monkeypatch.setattr(sweep, "complete", complete)


@pytest.fixture
def little(monkeypatch, swept):
    """Campaigns replay little."""
    monkeypatch.setattr(campaigns, "QUICK_POLICIES", LITTLE.policies)


def tried_again(*_):
    raise AssertionError("what is there is not tried again")


def make_campaign(folder, **changes):
    asked = {"is_quick": True, "seed": 0, "tasks": ("digits_softmax",), "num_processes": 1}
    return AdviceCampaign(folder, **{**asked, **changes})


@pytest.mark.slow
def test_what_was_tried_is_read_as_it_was(tmp_path, swept, monkeypatch):
    tried = try_advice("digits_softmax", LITTLE, tmp_path)

    monkeypatch.setattr(task_advice, "replay", tried_again)
    monkeypatch.setattr(task_advice, "glimpses", tried_again)

    assert try_advice("digits_softmax", LITTLE, tmp_path) == tried
    assert {one.policy for one in tried.outcomes["constant"]} == {"keep"}
    assert {one.policy for one in tried.outcomes["decaying"]} == {"keep", "Seesaw"}
    assert {one.share for one in tried.looks["constant"]} == {0.1, 0.25, 0.5, 1.0}


@pytest.mark.slow
def test_a_part_that_was_not_finished_is_tried_again(tmp_path, swept):
    tried = try_advice("digits_softmax", LITTLE, tmp_path)
    (tmp_path / "looks-decaying.json").rename(tmp_path / "looks-decaying.unfinished")
    (tmp_path / "looks-decaying.unfinished").write_text("[{")

    assert try_advice("digits_softmax", LITTLE, tmp_path) == tried


def test_a_folder_of_another_seed_is_refused(tmp_path, little):
    run_campaign(make_campaign(tmp_path, tasks=()), print)

    with pytest.raises(ConfigError, match="name another folder"):
        run_campaign(make_campaign(tmp_path, tasks=(), seed=7), print)


def test_replays_draw_with_other_seeds_than_the_sweep(tmp_path):
    for is_quick in (True, False):
        effort = make_campaign(tmp_path, is_quick=is_quick).effort

        assert not set(effort.sweep_seeds) & set(effort.replay_seeds)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_tables_are_printed_and_written(tmp_path, little, capsys):
    lines = []
    found = tables(run_campaign(make_campaign(tmp_path), lines.append))

    text, folder = as_text(found), write_files(tmp_path, found)

    assert "digits_softmax" in lines[0]
    assert "Regret in %, median / p90, design tasks, constant learning rate" in text
    with (folder / "policies.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["tasks"], row["rate"], row["policy"]) for row in rows} == {
        ("design", "constant", "keep"),
        ("design", "decaying", "keep"),
        ("design", "decaying", "Seesaw"),
    }
    assert {float(row["relative"]) for row in rows if row["policy"] == "keep"} == {1.0}
    written = json.loads((folder / "advice.json").read_text())
    shown = [row for row in written["recommendations"] if row["noise"] == "exact, average so far"]
    assert {row["kappa"] for row in written["recommendations"]} == {"published spread"}
    assert all(row["shown"] == 1.0 for row in shown)
    assert any(row["holds"] is None for row in written["recommendations"])


def test_a_task_without_advice_is_refused_by_name(capsys):
    status = command.run(
        is_quick=True, folder=None, tasks="iris_softmax", seed=0, processes=1, url=None, is_offline=True
    )

    assert status == 2
    assert "tasks has no 'iris_softmax': known are cancer_logistic" in capsys.readouterr().err
