"""What a long task's own tables do to those that are in the file already."""

import csv

import pytest
from benchmarks.imported_code import imported
from benchmarks.policies import benchmark_policies
from benchmarks.policies.benchmark_policies import ADVICE, Part, parts_of, write

from benchmarks import results_file
from noisescale_lab.reproduce.advice.scores import Score

LONG = "charlm_long_adamw"


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(results_file, "RESULTS", tmp_path)
    monkeypatch.setattr(results_file, "IS_SMOKE", False)
    monkeypatch.setattr(benchmark_policies, "FOLDER", tmp_path)
    return tmp_path / "policies_ours.csv"


def scores(median):
    return [Score("ours", "all", 12, median, 2 * median, 0.0, 0.5, 0.4, 0.6, 0.0)]


def medians(file):
    with file.open(newline="") as opened:
        return {
            row["tasks"]: (float(row["median"]), row["command"].partition(" --ours")[2])
            for row in csv.DictReader(opened)
        }


def test_the_tables_of_one_long_task_join_those_of_the_file_and_replace_its_own(results):
    others, alone = Part("held-out", ("digits_mlp", "char_bigram"), (540,)), Part("long", (LONG,), (540,))
    write("policies_ours", [(others, scores(60.0))])

    write("policies_ours", [(alone, scores(40.0))], LONG)
    write("policies_ours", [(alone, scores(50.0))], LONG)

    assert medians(results) == {"digits_mlp char_bigram": (60.0, ""), LONG: (50.0, f" --task {LONG}")}


def test_one_long_task_is_replayed_at_a_constant_and_a_decaying_rate_and_nothing_else_is():
    parts = parts_of(LONG)

    assert [(part.split, part.tasks, part.decays) for part in parts] == [
        ("long", (LONG,), False),
        ("long", (LONG,), True),
    ]


def test_a_replay_that_is_kept_is_of_its_price_its_training_and_its_tasks(monkeypatch):
    before = benchmark_policies.version("digits_mlp")
    stands_on = {path.name for path in imported([ADVICE / "replays.py", ADVICE / "replay.py"])}
    assert {"policy.py", "trainer.py", "digits.py", "path.py", "rate_verdict.py"} <= stands_on

    monkeypatch.setitem(benchmark_policies.PRICES, "digits_mlp", 0.5)

    assert benchmark_policies.version("digits_mlp") != before
