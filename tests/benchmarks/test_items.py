"""A stage that was cut off goes on where it was: items of this very code stay, all others are measured, one by one."""

import sys
from types import SimpleNamespace

import pytest
import torch
from benchmarks.gpu import correctness, language_model, outer_products, steps, tuning
from benchmarks.kernels import benchmark_kernels, items, results_table
from benchmarks.kernels.tensor_sets import TensorSet

from benchmarks import results_file

DEVICE = torch.device("cuda", 0)


class Measuring:
    """Stands for the device: which items were measured, and after how many it goes away."""

    def __init__(self):
        self.asked = []
        self.most = 1000

    def __call__(self, key):
        if len(self.asked) == self.most:
            raise ConnectionError("the machine has gone away")
        self.asked.append(key)
        return {"status": results_table.MEASURED}

    def restart(self, most=1000):
        self.asked, self.most = [], most


def fake_correctness(patch, measuring):
    def checks(*, on_gpu):
        for case in ("fp32", "bf16", "odd"):
            yield "sums of lists", case, case

    def row_of(part, case, check):
        return {"part": part, "case": case, **measuring((part, case))}

    def tests(part, seconds):
        measuring((part,))
        return [{"part": part, "case": f"test {i}", "misses": ""} for i in range(2)]

    for name, stand_in in (("checks", checks), ("row_of", row_of), ("rows_of_tests", tests)):
        patch.setattr(correctness, name, stand_in)


def fake_steps(patch, measuring):
    patch.setattr(steps, "row", lambda item, device, is_tiny: steps.about(item) | measuring(steps.key(item)))


def fake_tuning(patch, measuring):
    row = {"ms": 1.0, "ms_low": 1.0, "ms_high": 1.0, "of_roofline": 0.5}
    patch.setattr(tuning, "measured", lambda item, *rest: tuning.about(item) | measuring(tuning.key(item)) | row)
    for name in ("compile_all", "random_gradients", "workload"):
        patch.setattr(tuning, name, lambda *arguments: "stands in")
    patch.setattr(tuning.tuned, "capability_of", lambda device: (9, 0))
    clock = SimpleNamespace(
        quickest=min, measure=lambda calls, rounds: {name: SimpleNamespace(work=[1.0] * 6) for name in calls}
    )
    patch.setattr(tuning, "Clock", lambda *arguments: clock)
    patch.setattr(tuning, "Roofline", lambda *arguments: SimpleNamespace(passes={"read": None}, num_bytes=1))


def fake_outer_products(patch, measuring):
    def rows_of(outputs, inputs, *rest):
        found = measuring(outer_products.key((outputs, inputs)))
        return [{"outputs": outputs, "inputs": inputs, "way": way, **found} for way in ("ours", "theirs")]

    patch.setattr(outer_products, "rows_of", rows_of)
    patch.setattr(outer_products, "Clock", lambda *arguments: None)


def fake_kernels(patch, measuring):
    def rows_of(tensor_set, dtype_name):
        for operation in ("norm", "dot"):
            yield {"set": tensor_set.name, "dtype": dtype_name, "operation": operation, "status": "measured"}
        measuring((tensor_set.name, dtype_name))

    patch.setattr(benchmark_kernels, "Bench", lambda *arguments, **options: SimpleNamespace(rows_of=rows_of))
    patch.setattr(benchmark_kernels, "all_sets", lambda: (TensorSet("a", ((1,),)), TensorSet("b", ((2,),))))


PARTS = {
    "correctness": (correctness, fake_correctness, 5),
    "kernels": (benchmark_kernels, fake_kernels, 4),
    "outer_products": (outer_products, fake_outer_products, len(outer_products.SHAPES)),
    "steps": (steps, fake_steps, len(steps.ITEMS)),
    "tuning": (tuning, fake_tuning, len(tuning.items(tuning.SETTINGS))),
}


@pytest.fixture
def results(monkeypatch, tmp_path):
    """A folder of results beside a device that is not there; `code` is what the fingerprint says."""
    found = SimpleNamespace(code="this", folder=tmp_path)
    monkeypatch.setattr(results_file, "RESULTS", tmp_path)
    monkeypatch.setattr(results_file, "fingerprint", lambda what: found.code)
    monkeypatch.setattr(results_file, "COMMIT", "abc")
    monkeypatch.setattr(results_table, "device_name", lambda device: "A GPU")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    monkeypatch.setattr(torch.compiler, "reset", lambda: None)  # imports inductor
    return found


@pytest.fixture(params=PARTS)
def part(request, results, monkeypatch):
    """How to call a part of a stage whose measuring is played, and how many items it has."""
    script, fake, count = PARTS[request.param]
    measuring = Measuring()
    fake(monkeypatch, measuring)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["a script", *arguments])
        script.main()

    return SimpleNamespace(call=call, measuring=measuring, count=count, rows=lambda: rows_in(results.folder))


def rows_in(folder):
    return [row for path in folder.glob("*.csv") for row in results_file.read(path.stem)]


def cut_off_after(part, items_before, *arguments):
    part.measuring.restart(items_before)
    with pytest.raises(ConnectionError):
        part.call(*arguments)


def test_a_part_that_was_cut_off_goes_on_with_the_next_item(part):
    cut_off_after(part, 1)
    first, kept = part.measuring.asked, part.rows()

    part.measuring.restart()
    part.call()
    rest = part.measuring.asked
    part.measuring.restart()
    part.call()

    assert kept
    assert len({*first, *rest}) == len(first) + len(rest) == part.count
    assert part.measuring.asked == []
    assert all(any(now.items() >= row.items() for now in part.rows()) for row in kept)


def test_what_is_of_other_code_stays_until_it_is_measured_anew(part, results):
    part.call()
    before = part.rows()

    results.code = "changed"
    cut_off_after(part, 1)
    between = part.rows()
    part.measuring.restart()
    part.call()

    assert len(part.measuring.asked) == part.count - 1
    assert len(between) == len(before)
    assert {row["code"] for row in between} == {"this", "changed"}
    assert {row["code"] for row in part.rows()} == {"changed"}
    assert len(part.rows()) == len(before)


def test_again_measures_all_and_loses_nothing_that_was_not_measured_again(part):
    part.call()
    before = part.rows()

    cut_off_after(part, 1, "--again")
    between = part.rows()
    part.measuring.restart()
    part.call("--again")

    assert len(between) == len(before)
    assert len(part.measuring.asked) == part.count
    assert len(part.rows()) == len(before)


def test_a_part_whose_time_is_over_says_that_items_are_left_and_measures_them_when_called_again(part, capsys):
    with pytest.raises(SystemExit) as ended:
        part.call("--seconds", "0")

    assert ended.value.code == items.IS_LEFT
    assert part.measuring.asked == []
    assert f"{part.count} left: call again" in capsys.readouterr().out
    part.call()
    assert len(part.measuring.asked) == part.count
    assert not any(items.is_cut_off(row) for row in part.rows())


def test_what_another_device_has_measured_is_not_taken_for_this_ones(part, monkeypatch):
    part.call()
    monkeypatch.setattr(results_table, "device_name", lambda device: "a-gpu")  # the same file
    part.measuring.restart()

    part.call()

    assert len(part.measuring.asked) == part.count


def some_items(**options):
    return items.Items("gpu_language_model", DEVICE, lambda row: ("training",), command="train", seconds=60, **options)


def test_an_item_that_goes_on_is_written_as_it_grows_and_replaces_an_earlier_one_when_it_is_over(results):
    some_items().add([{"step": 1, "status": "measured"}, {"step": 2, "status": "measured"}])
    again = some_items(is_again=True)

    again.add([{"step": 10, "status": f"{items.CUT_OFF} before step 20"}], is_over=False)
    again.add([{"step": step, "status": f"{items.CUT_OFF} before step 20"} for step in (10, 20)], is_over=False)
    half = [row["step"] for row in rows_in(results.folder)]
    is_there = some_items().missing(["training"], lambda name: (name,)) == []
    again.add([{"step": step, "status": "measured"} for step in (10, 20)])

    assert half == ["1", "2", "10", "20"]
    assert is_there  # by the training that was over
    assert [row["step"] for row in rows_in(results.folder)] == ["10", "20"]


def test_an_item_that_was_cut_off_is_begun_anew(results):
    some_items().add([{"step": 10, "status": f"{items.CUT_OFF} before step 20"}], is_over=False)

    assert some_items().missing(["training"], lambda name: (name,)) == ["training"]


@pytest.mark.slow
@pytest.mark.thorough
def test_a_language_model_is_written_at_every_look_and_counts_once_its_training_is_over(results, monkeypatch, tmp_path):
    seen = []

    class Written(items.Items):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options | {"is_written": True})

        def add(self, rows, *, is_over=True):
            super().add(rows, is_over=is_over)
            is_there = some_items().missing(["training"], lambda name: (name,)) == []
            seen.append((is_over, is_there, [row["step"] for row in rows_in(results.folder)]))

    monkeypatch.setattr(language_model, "Items", Written)
    monkeypatch.setattr(
        language_model, "texts", lambda most: [(f"def f{i}(x): return x\n" * 200, i == 3) for i in range(4)]
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(items, "results_name", lambda what, device: f"{what}-a-gpu")
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path / "spool"))
    monkeypatch.setattr(sys, "argv", ["language_model.py", "--tiny"])

    language_model.main()

    assert seen == [
        (False, False, ["10"]),
        (False, False, ["10", "20"]),
        (False, False, ["10", "20", "24"]),
        (True, True, ["10", "20", "24"]),
    ]


def test_sizes_that_say_nothing_read_and_write_nothing(results):
    some_items().add([{"step": 1, "status": "measured"}])
    before = rows_in(results.folder)

    tiny = some_items(is_written=False)
    tiny.add([{"step": 7, "status": "measured"}])

    assert tiny.missing(["training"], lambda name: (name,)) == ["training"]
    assert rows_in(results.folder) == before


def test_a_case_for_which_there_was_no_time_is_told_by_the_file_where_it_was_never_checked(results, monkeypatch):
    fake_correctness(monkeypatch, Measuring())
    monkeypatch.setattr(sys, "argv", ["correctness.py", "--seconds", "0"])

    with pytest.raises(SystemExit):
        correctness.main()

    assert [row["misses"] for row in rows_in(results.folder)] == ["cut off: no time left"] * 5


def test_the_sanitizer_runs_its_own_tests_and_no_others(tmp_path):
    plain, sanitized = (
        correctness.command_of_tests(part, tmp_path / "x.xml") for part in (correctness.TESTS, correctness.SANITIZED)
    )

    assert plain[plain.index("-k") + 1] == "not sanitizer"
    assert sanitized[sanitized.index("-k") + 1] == "sanitizer"
    assert [x for x in plain if x != "not sanitizer"] == [x for x in sanitized if x != "sanitizer"]


def test_where_there_is_no_sanitizer_no_test_is_run_again(monkeypatch):
    monkeypatch.setattr(correctness.shutil, "which", lambda name: None)
    monkeypatch.setattr(correctness.subprocess, "run", lambda *a, **k: pytest.fail("tests were run"))

    [row] = correctness.rows_of_tests(correctness.SANITIZED, 60)

    assert row["misses"] == "not run: compute-sanitizer is not installed"
