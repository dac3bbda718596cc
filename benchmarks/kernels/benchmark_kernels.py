"""Sums over gradients: time, share of what a read-only pass reads, launches, errors; results/kernels-<device>.csv.

On a GPU everything is measured, but for what this very code has measured there already, unless `--again` is given;
without one, or with `--cpu`, what a CPU can say in a few minutes. `--sets` measures less and writes nothing.
"""

import argparse
import gc
import itertools
import math
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.kernels.contenders import Contender, contenders
from benchmarks.kernels.intervals import median_interval, ratio_interval
from benchmarks.kernels.items import Items, Key
from benchmarks.kernels.results_table import MEASURED, Row, not_measured
from benchmarks.kernels.roofline import Roofline
from benchmarks.kernels.tensor_sets import TensorSet, all_sets
from benchmarks.kernels.timing import FLUSH_BYTES, Clock, Times, launches_of
from benchmarks.kernels.workload import Truth, Workload, bytes_needed, largest_error, random_gradients, truths, workload
from benchmarks.smoke import size
from noisescale.kernels.operations import Operation

OPERATIONS = {
    "norm": Operation.SQ_NORMS,
    "dot": Operation.DOTS,
    "accumulate": Operation.ACCUMULATE,
    "preconditioned": Operation.PRECONDITIONED,
}

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}

COMMAND = "python benchmarks/kernels/benchmark_kernels.py"

ROOFLINE = "read-only pass"
GPU_ROUNDS, CPU_ROUNDS = 10, 3
LARGE = 0.5e9
"""Bytes from which a sum is to reach its share of the roofline."""

MOST_ERROR = 1e-6

MOST_OF_ADDING = 1.03
"""Time of the device that adding up and summing squares may take, for plain adding's."""

CPU_MOST = 1e7
"""Elements up to which a CPU sums up two lists, in fp64, in less than a second."""


class Bench:
    """Measures sets on one device.

    Args:
        device: On which all is measured.
        rounds: Of A-B-B-A; each times a call twice.
        with_compiled: Whether inductor takes part; on a GPU on one set: compiling takes longer than all the rest.
        flush_bytes: Read between calls.
        roofline_elements: Of the buffer that is only read; None: as many as suit the device.
    """

    def __init__(
        self,
        device: torch.device,
        rounds: int,
        *,
        with_compiled: bool = True,
        flush_bytes: int = FLUSH_BYTES,
        roofline_elements: int | None = None,
    ) -> None:
        self.device = device
        self._rounds = rounds
        self._with_compiled = with_compiled
        self._clock = Clock(device, flush_bytes)
        self._roofline = Roofline(device, roofline_elements)
        self._read_name = self._clock.quickest(self._roofline.passes)
        self._read = self._roofline.passes[self._read_name]

    def rows_of(self, tensor_set: TensorSet, dtype_name: str) -> Iterator[Row]:
        """One row for each operation and contender."""
        why_not = self._why_not(tensor_set, DTYPES[dtype_name])
        if why_not:
            for name in OPERATIONS:
                yield _about(tensor_set, dtype_name, name) | {"status": not_measured(why_not)}
            return
        gradients = random_gradients(tensor_set, DTYPES[dtype_name], self.device)
        for name, operation in OPERATIONS.items():
            if (
                self.device.type != "cuda"
                and operation is not Operation.SQ_NORMS
                and tensor_set.num_elements > CPU_MOST
            ):
                yield _about(tensor_set, dtype_name, name) | {"status": not_measured("takes minutes on a CPU")}
                continue
            work = workload(operation, gradients)
            about = _about(tensor_set, dtype_name, name)
            yield from ({**about, **row} for row in self._rows_of_work(work, tensor_set))
            del work
            self._release()

    def _rows_of_work(self, work: Workload, tensor_set: TensorSet) -> Iterator[Row]:
        expected = truths(work)
        ready: list[Contender] = []
        facts: dict[str, Row] = {}
        is_first = tensor_set.name == "gpt2-124M" and work.gradients[0].dtype == torch.bfloat16
        is_compiled = self._with_compiled and (self.device.type != "cuda" or is_first)
        for contender in contenders(work, with_compiled=is_compiled):
            reason, facts[contender.name] = self._prepare(contender, work, expected)
            if reason:
                yield {"contender": contender.name, "status": not_measured(reason)}
            else:
                ready.append(contender)
        calls: dict[str, Callable[[], object]] = {contender.name: contender.call for contender in ready}
        times = self._clock.measure(calls | {ROOFLINE: self._read}, self._rounds)
        reference = ready[min(1, len(ready) - 1)].name
        for contender in ready:
            found = _numbers(contender.name, times, work.num_bytes, self._roofline.num_bytes, reference)
            row = {"contender": contender.name, **found, **facts[contender.name], "status": MEASURED}
            yield row | {"misses": misses(row, contender, work, tensor_set, self.device)}
        yield self._row_of_roofline(times[ROOFLINE])

    def _prepare(self, contender: Contender, work: Workload, expected: Sequence[Truth]) -> tuple[str, Row]:
        """Warm up and check; the reason where that cannot be, and what was found."""
        if contender.why_not:
            return contender.why_not, {}
        try:
            self._clock.warm_up(contender.call)
            first, second = self._sums(contender, work), self._sums(contender, work)
            launches = launches_of(contender.call, self.device)
        except torch.cuda.OutOfMemoryError:
            self._release()
            return "out of the device's memory", {}
        except Exception as fault:
            return f"{type(fault).__name__}: {str(fault).splitlines()[0][:120] if str(fault) else ''}", {}
        facts: Row = {}
        if first:
            repeats = all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
            facts = {"largest_relative_error": largest_error(first, expected), "repeats_bitwise": int(repeats)}
        if launches is not None:
            facts |= {"launches": launches.kernels, "copies": launches.copies}
        return "", facts

    def _sums(self, contender: Contender, work: Workload) -> list[Tensor]:
        if work.operation is Operation.ACCUMULATE:
            torch._foreach_zero_(work.others or [])
            contender.call()
        return [sums.clone() for sums in contender.call()]

    def _row_of_roofline(self, times: Times) -> Row:
        speed = median_interval([self._roofline.num_bytes / seconds / 1e9 for seconds in times.work])
        return {
            "contender": f"{ROOFLINE}: {self._read_name}",
            "megabytes": self._roofline.num_bytes / 1e6,
            "gb_per_s": speed.value,
            "gb_per_s_low": speed.low,
            "gb_per_s_high": speed.high,
            "status": MEASURED,
        }

    def _why_not(self, tensor_set: TensorSet, dtype: torch.dtype) -> str:
        if self.device.type != "cuda":
            return "needs a CUDA device" if tensor_set.needs_gpu else ""
        free, needed = torch.cuda.mem_get_info(self.device)[0], bytes_needed(tensor_set, dtype)
        return f"needs {needed / 1e9:.0f} GB, {free / 1e9:.0f} GB are free" if needed > free else ""

    def _release(self) -> None:
        if self._with_compiled:
            torch.compiler.reset()
        if self.device.type == "cuda":
            gc.collect()
            torch.cuda.empty_cache()


def _about(tensor_set: TensorSet, dtype_name: str, operation: str) -> Row:
    return {
        "set": tensor_set.name,
        "tensors": len(tensor_set.shapes),
        "elements": tensor_set.num_elements,
        "dtype": dtype_name,
        "operation": operation,
    }


def _numbers(
    name: str, times: dict[str, Times], num_bytes: int, roofline_bytes: int, reference: str
) -> dict[str, str | int | float]:
    """Times and rates of one contender with their intervals of 95 %."""
    own, other, roof = times[name], times[reference], times[ROOFLINE]
    columns = {
        "wall_us": median_interval([1e6 * seconds for seconds in own.wall]),
        "host_us": median_interval([1e6 * seconds for seconds in own.host]),
        "gb_per_s": median_interval([num_bytes / seconds / 1e9 for seconds in own.work]),
        "of_roofline": ratio_interval(
            [
                num_bytes / a / (roofline_bytes / b)
                for a, b in zip(_by_round(own.work), _by_round(roof.work), strict=True)
            ]
        ),
        "wall_ratio": ratio_interval([a / b for a, b in zip(_by_round(own.wall), _by_round(other.wall), strict=True)]),
    }
    if own.device:
        columns["device_us"] = median_interval([1e6 * seconds for seconds in own.device])
        pairs = zip(_by_round(own.device), _by_round(other.device), strict=True)
        columns["device_ratio"] = ratio_interval([a / b for a, b in pairs])
    row: Row = {"megabytes": num_bytes / 1e6, "ratio_to": reference}
    for column, interval in columns.items():
        row |= {column: interval.value, f"{column}_low": interval.low, f"{column}_high": interval.high}
    return row


def _by_round(seconds: Sequence[float]) -> list[float]:
    """The mean of the two visits of each round."""
    return [statistics.fmean(pair) for pair in zip(seconds[::2], seconds[1::2], strict=True)]


def misses(row: Row, contender: Contender, work: Workload, tensor_set: TensorSet, device: torch.device) -> str:
    """Which promises a row of ours breaks, as a sentence; empty where none."""
    if not contender.is_ours:
        return ""
    bounds = [(float(row["largest_relative_error"]), MOST_ERROR, "largest_relative_error")]
    on_gpu, is_norm = device.type == "cuda", work.operation is Operation.SQ_NORMS
    if is_norm and not on_gpu and not tensor_set.targets_many:
        bounds.append((float(row["wall_ratio"]), 1.15, "wall_ratio"))
    is_fused = on_gpu and "operators" not in contender.name
    if is_fused and is_norm:
        bounds.append((float(row["wall_ratio"]), 0.5 if tensor_set.targets_many else 1.0, "wall_ratio"))
        if work.num_bytes >= LARGE:
            bounds.append((-float(row["of_roofline"]), -0.92, "-of_roofline"))
    if is_fused and work.operation is Operation.ACCUMULATE:
        bounds.append((float(row["device_ratio"]), MOST_OF_ADDING, "device_ratio"))
    broken = [f"{what} {found:.3g} > {bound:g}" for found, bound, what in bounds if not found <= bound]
    return "; ".join(broken if row["repeats_bitwise"] else [*broken, "not repeatable"])


def show(row: Row) -> None:
    """Print a row."""
    line = f"{row['set']:<10} {row['dtype']} {row['operation']:<15}{row.get('contender', ''):<46}"
    if "wall_us" in row:
        line += f" {row['wall_us']:>11,.1f} us [{row['wall_us_low']:,.1f}, {row['wall_us_high']:,.1f}]"
        line += f"  ratio {row['wall_ratio']:.3f} [{row['wall_ratio_low']:.3f}, {row['wall_ratio_high']:.3f}]"
        line += f"  of roofline {row['of_roofline']:.3f}  error {row.get('largest_relative_error', float('nan')):.1e}"
    elif "gb_per_s" in row:
        line += f" {row['gb_per_s']:,.4g} GB/s [{row['gb_per_s_low']:,.4g}, {row['gb_per_s_high']:,.4g}]"
    print(f"{line}  {row['status']}  {row.get('misses', '')}".rstrip(), flush=True)


def key_of(row: Row) -> Key:
    """All operations and contenders on a set of one type are one item."""
    return str(row["set"]), str(row["dtype"])


def key(one: tuple[TensorSet, str]) -> Key:
    """Of the rows that a set of one type becomes."""
    return one[0].name, one[1]


def main() -> None:
    """Measure all sets, print, and write the results unless only some were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cpu", action="store_true", help="even where there is a GPU")
    parser.add_argument("--sets", default="", help="sets whose name holds this; writes nothing")
    parser.add_argument("--no-inductor", action="store_true", help="compile nothing with inductor")
    parser.add_argument("--again", action="store_true", help="also sets that this very code has measured on this GPU")
    parser.add_argument("--seconds", type=float, default=math.inf, help="a set that is not begun by then is left out")
    arguments = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() and not arguments.cpu else torch.device("cpu")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    is_again = arguments.again or device.type == "cpu"  # which nobody takes away: as every other benchmark
    kept = Items(
        "kernels", device, key_of, command=" ".join([COMMAND, *sys.argv[1:]]), seconds=arguments.seconds,
        is_again=is_again, is_written=not arguments.sets,
    )  # fmt: skip
    sets = [one for one in itertools.islice(all_sets(), size(None, 1)) if arguments.sets in one.name]
    missing = kept.missing(itertools.product(sets, size(list(DTYPES), list(DTYPES)[:1])), key)
    if not missing:
        return
    bench = Bench(device, GPU_ROUNDS if device.type == "cuda" else CPU_ROUNDS, with_compiled=not arguments.no_inductor)
    for tensor_set, dtype_name in kept.in_time(missing, key):
        rows = []
        for row in bench.rows_of(tensor_set, dtype_name):
            show(row)
            rows.append(row)
        kept.add(rows)
    kept.end()


if __name__ == "__main__":
    main()
