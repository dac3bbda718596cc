"""The benchmarks of kernels and of whole steps, on tiny inputs: rows are whole, errors are found, reasons are said."""

import dataclasses
import math

import pytest
import torch
from benchmarks.kernels import benchmark_kernels, contenders, intervals, results_table, roofline, workload
from benchmarks.kernels.tensor_sets import TensorSet, gpt2_124m, huge, llama_1b
from benchmarks.kernels.timing import Clock, launches_of, palindrome
from benchmarks.step_overhead import benchmark_step_overhead, modes
from benchmarks.step_overhead.modes import MODES, Mode
from benchmarks.step_overhead.small_gpt import Size
from triton import compile as compile_kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from noisescale.kernels.operations import Operation

CPU = torch.device("cpu")

SMALL = TensorSet("small", ((3, 5), (700,), (64, 64)))

TINY_GPT = Size(width=8, depth=1, heads=2, vocabulary=16, context=4)


@pytest.fixture(scope="module")
def bench():
    torch.manual_seed(0)
    return benchmark_kernels.Bench(CPU, 3, with_compiled=False, flush_bytes=4096, roofline_elements=8192)


def work_of(operation):
    torch.manual_seed(1)
    return workload.workload(operation, workload.random_gradients(SMALL, torch.float32, CPU))


def test_sets_have_the_published_sizes():
    sizes = [tensor_set().num_elements for tensor_set in (gpt2_124m, llama_1b, huge)]

    assert sizes == [124_439_808, 1_235_814_400, 5_000_000_000]


def test_contenders_are_visited_forth_and_back():
    assert palindrome(["a", "b", "c"]) == ["a", "b", "c", "c", "b", "a"]


def test_calls_are_timed_in_the_order_a_b_b_a():
    visits = []
    calls = {name: lambda name=name: visits.append(name) for name in "ab"}

    times = Clock(CPU, 4096).measure(calls, rounds=2)

    assert "".join(visits) == "abba" * 2
    assert [len(times["a"].wall), len(times["a"].host), times["a"].device] == [4, 4, []]


@pytest.mark.parametrize("dtype_name", ["fp32", "bf16"])
def test_every_row_is_whole_and_ours_within_the_bound(bench, dtype_name):
    rows = list(bench.rows_of(SMALL, dtype_name))

    measured = [row for row in rows if row["status"] == results_table.MEASURED]
    ours = [row for row in measured if str(row["contender"]) == contenders.OURS]
    assert [row["operation"] for row in ours] == ["norm", "dot", "accumulate", "preconditioned"]
    for row in ours:
        assert row["largest_relative_error"] <= 1e-6
        assert row["repeats_bitwise"] == 1
        assert row["wall_us_low"] <= row["wall_us"] <= row["wall_us_high"]
        assert row["of_roofline_low"] <= row["of_roofline"] <= row["of_roofline_high"]
    assert all("gb_per_s" in row for row in measured)
    assert all(str(row["status"]).startswith("not measured: ") for row in rows if row not in measured)


def test_what_needs_a_gpu_says_so_on_a_cpu(bench):
    rows = list(bench.rows_of(huge(), "bf16"))

    assert {row["status"] for row in rows} == {"not measured: needs a CUDA device"}
    assert [row["operation"] for row in rows] == list(benchmark_kernels.OPERATIONS)


@pytest.mark.parametrize("operation", [Operation.SQ_NORMS, Operation.DOTS, Operation.PRECONDITIONED], ids=str)
def test_an_error_is_found_in_one_tensor_and_in_the_total(operation):
    truths = workload.truths(work_of(operation))
    exact = [truth.sums.clone() for truth in truths]
    wrong = [sums.clone() for sums in exact]
    wrong[-1][1] += 1e-4 * truths[-1].scale[1]

    assert workload.largest_error(exact, truths) == 0
    assert workload.largest_error(wrong, truths) == pytest.approx(1e-4)
    assert workload.largest_error([exact[0].sum().reshape(1) * 1.5], truths[:1]) == pytest.approx(0.5)


def test_accumulating_moves_three_times_the_bytes_of_a_norm():
    assert work_of(Operation.ACCUMULATE).num_bytes == 3 * work_of(Operation.SQ_NORMS).num_bytes


def test_a_broken_promise_is_named():
    work = work_of(Operation.SQ_NORMS)
    ours = contenders.Contender(contenders.OURS, list, is_ours=True)
    row = {"largest_relative_error": 3e-6, "wall_ratio": 1.3, "repeats_bitwise": 0}

    said = benchmark_kernels.misses(row, ours, work, SMALL, CPU)

    assert said == "largest_relative_error 3e-06 > 1e-06; wall_ratio 1.3 > 1.15; not repeatable"
    assert benchmark_kernels.misses(row, dataclasses.replace(ours, is_ours=False), work, SMALL, CPU) == ""


@pytest.mark.parametrize(("ratio", "said"), [(1.03, ""), (1.04, "device_ratio 1.04 > 1.03")])
def test_adding_up_and_summing_squares_may_take_three_per_cent_more_than_plain_adding(ratio, said):
    ours = contenders.Contender(contenders.OURS, list, is_ours=True)
    row = {"largest_relative_error": 1e-8, "device_ratio": ratio, "repeats_bitwise": 1}

    found = benchmark_kernels.misses(row, ours, work_of(Operation.ACCUMULATE), SMALL, torch.device("cuda", 0))

    assert found == said


def test_too_many_outputs_are_not_compiled():
    many = [torch.ones(1)] * (contenders.MOST_COMPILED + 1)
    work = workload.workload(Operation.SQ_NORMS, many)

    compiled = next(c for c in contenders.contenders(work) if c.name == contenders.COMPILED)

    assert "compiled for minutes" in compiled.why_not


def test_the_median_lies_between_its_order_statistics():
    interval = intervals.median_interval([float(i) for i in range(1, 21)])

    assert (interval.value, interval.low, interval.high) == (10.5, 6.0, 15.0)  # n = 20: the 6th and the 15th
    with pytest.raises(ValueError, match="at least 6, got 3"):
        intervals.median_interval([1.0, 2.0, 3.0])


def test_a_ratio_of_two_rounds_has_the_interval_of_student():
    interval = intervals.ratio_interval([1.0, math.exp(0.2)])

    assert math.log(interval.value) == pytest.approx(0.1)
    assert math.log(interval.high / interval.value) == pytest.approx(12.7062 * 0.1, rel=1e-4)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_reading_kernel_compiles_for_a_hopper_with_wide_loads(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    types = {"values": "*fp32", "sums": "*fp32", "numel": "i32", "BLOCK": "constexpr"}
    divisible = {(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]}
    source = ASTSource(roofline.read_kernel, types, {"BLOCK": 4096}, divisible)

    compiled = compile_kernel(source, target=GPUTarget("cuda", 90, 32), options=roofline.OPTIONS | {"num_warps": 8})

    assert "ld.global.v4.b32" in compiled.asm["ptx"]


def test_no_launches_are_counted_on_a_cpu():
    assert launches_of(lambda: None, CPU) is None


def test_a_table_says_which_device_and_versions_it_was_measured_with():
    about = results_table.versions(CPU)

    assert list(about) == ["device", "torch", "cuda", "triton"]
    assert results_table.results_name("kernels", CPU) == "kernels-cpu"


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("mode", MODES[:4], ids=lambda mode: mode.name)
def test_a_watched_training_is_measured_beside_an_unwatched_one(mode):
    rounds = benchmark_step_overhead.measure(mode, TINY_GPT, 8, rounds=2, steps=1, device=CPU)

    assert len(rounds.unwatched) == len(rounds.watched) == 4
    assert rounds.steps == 8
    assert rounds.num_measurements > 0
    assert min(rounds.unwatched + rounds.watched) > 0


def test_an_option_that_the_client_lacks_is_a_reason():
    row = next(benchmark_step_overhead.rows(benchmark_step_overhead.ON_CPU, [Mode("later", {"not_yet": "x"})], CPU))

    assert row["status"] == "not measured: watch() knows no not_yet="
    assert [modes.why_not(mode) for mode in MODES] == [""] * len(MODES)


def test_blocks_are_visited_in_the_order_a_b_b_a_and_the_models_change_places(monkeypatch):
    visits = []
    seconds = benchmark_step_overhead.Training.seconds

    def noted(training, run, steps):
        visits.append((id(training), run is not None))
        return seconds(training, run, steps)

    monkeypatch.setattr(benchmark_step_overhead.Training, "seconds", noted)

    benchmark_step_overhead.measure(MODES[0], TINY_GPT, 8, rounds=1, steps=1, device=CPU)

    watched = [is_watched for _, is_watched in visits]
    assert watched == [False, True, False, True, True, False] * 2  # a warm-up of both, then A-B-B-A
    assert {training for training, is_watched in visits[:6] if is_watched}.isdisjoint(
        {training for training, is_watched in visits[6:] if is_watched}
    )
