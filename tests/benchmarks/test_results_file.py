"""The writer of results: where each row comes from, rows that stay, and fresh again once all are measured again."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def results_file(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import results_file

    monkeypatch.setattr(results_file, "RESULTS", tmp_path)
    return results_file


@pytest.mark.slow
def test_each_row_says_commit_machine_load_date_command_and_code(results_file):
    results_file.write_rows("reproduce", [{"a": 1.0}, {"b": "x, y"}], command="python x.py", about={"device": "CPU"})

    first, second = results_file.read("reproduce")
    assert list(first) == ["a", "b", "device", "commit", "machine", "load", "date", "command", "code"]
    assert (first["a"], first["b"], second["a"], second["b"]) == ("1", "", "", "x, y")
    assert first["code"] == results_file.fingerprint("reproduce")
    assert all(first[name] for name in ("commit", "machine", "load", "date", "command", "device"))


def test_a_file_is_fresh_again_once_all_its_rows_are_measured_again(results_file):
    import tables

    old = [{"seed": seed, "commit": "old", "code": "another"} for seed in "01"]

    results_file.write_rows("reproduce", [{"seed": 0}], command="python x.py", kept=old[1:])
    half = tables.is_fresh("reproduce", results_file.read("reproduce"))
    results_file.write_rows("reproduce", [{"seed": 1}], command="python x.py", kept=results_file.read("reproduce")[1:])
    whole = tables.is_fresh("reproduce", results_file.read("reproduce"))

    assert (half, whole) == (False, True)


def test_figures_are_written_with_their_target_and_as_they_were_asked_for(results_file, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmark_series.py", "--steps", "7"])

    results_file.write("series", [results_file.Figure("p50", 10.65432, "ms", "at most 15")])

    [row] = results_file.read("series")
    assert (row["figure"], row["value"], row["target"]) == ("p50", "10.6543", "at most 15")
    assert row["command"] == "python benchmarks/benchmark_series.py --steps 7"
    assert "at most 15" in capsys.readouterr().out


def test_a_writer_that_is_cut_off_leaves_the_file_as_it_was(results_file, monkeypatch):
    results_file.write_rows("reproduce", [{"a": 1}], command="python x.py")
    before = results_file.read("reproduce")

    def cut_off(table, rows):
        raise KeyboardInterrupt

    monkeypatch.setattr(results_file.csv.DictWriter, "writerows", cut_off)
    with pytest.raises(KeyboardInterrupt):
        results_file.write_rows("reproduce", [{"a": 2}], command="python x.py", kept=before)

    assert results_file.read("reproduce") == before


def test_the_smoke_form_writes_nothing(results_file, monkeypatch, tmp_path):
    monkeypatch.setattr(results_file, "IS_SMOKE", True)

    results_file.write("series", [results_file.Figure("p50", 1.0, "ms")])

    assert list(tmp_path.iterdir()) == []


def test_uncommitted_changes_of_any_benchmark_are_told_by_a_plus(results_file, monkeypatch):
    asked = []

    def said(*arguments):
        asked.append(arguments)
        return " M benchmarks/truth/peers.py" if arguments[0] == "status" else "abcdef1"

    monkeypatch.setattr(results_file, "_git", said)

    assert results_file.provenance("truth", "x")["commit"] == "abcdef1+"
    assert {"benchmarks", ":!benchmarks/results"} <= set(asked[0]) | set(asked[1])
