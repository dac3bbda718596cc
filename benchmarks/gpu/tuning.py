"""How the sums of lists are best cut on this device: every block and number of warps; gpu_tuning-<device>.csv.

The sets are a Llama's 1.24e9 gradients; each setting is compiled in a process of its own beforehand, many at a time.
The entries that belong into `noisescale/kernels/multi_tensor/tuned.py` are printed at the end. Without a GPU, or with
`--smoke`, one setting of each operation on small lists shows that it runs: Triton interprets, nothing is written.
"""

import argparse
import concurrent.futures
import itertools
import multiprocessing
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

if __name__ == "__main__" and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.kernels.contenders import fused
from benchmarks.kernels.intervals import median_interval
from benchmarks.kernels.items import Items, Key
from benchmarks.kernels.results_table import MEASURED, Row
from benchmarks.kernels.roofline import Roofline
from benchmarks.kernels.tensor_sets import TensorSet, llama_1b
from benchmarks.kernels.timing import FLUSH_BYTES, Clock
from benchmarks.kernels.workload import Workload, random_gradients, workload
from benchmarks.smoke import IS_SMOKE
from noisescale.kernels.multi_tensor import launch, tuned
from noisescale.kernels.multi_tensor.tuned import Setting, usual
from noisescale.kernels.operations import Operation

COMMAND = "python benchmarks/gpu/tuning.py"

BLOCKS, WARPS = (1024, 2048, 4096, 8192), (4, 8, 16)
SETTINGS = tuple(Setting(b, w) for b, w in itertools.product(BLOCKS, WARPS) if 8 <= b // (32 * w) <= 64)
WANTED = (
    (Operation.SQ_NORMS, torch.bfloat16),
    (Operation.SQ_NORMS, torch.float32),
    (Operation.ACCUMULATE, torch.bfloat16),
    (Operation.DOTS, torch.float32),
)
SMALL = TensorSet("small", ((5000,), (70_000,)))
ROUNDS, FEW_ROUNDS = 4, 3


@dataclass(frozen=True, slots=True)
class Item:
    """One row.

    Attributes:
        operation: What is summed up.
        dtype: Of the gradients.
        setting: How.
    """

    operation: Operation
    dtype: torch.dtype
    setting: Setting


@dataclass(frozen=True, slots=True)
class Quicker:
    """A setting that is quicker than the usual one, beyond what measuring scatters.

    Attributes:
        setting: Which.
        ms: Its time.
        usual_ms: That of the usual setting.
    """

    setting: Setting
    ms: float
    usual_ms: float


def items(settings: Iterable[Setting]) -> list[Item]:
    """Each setting of each operation and type.

    Args:
        settings: Which.
    """
    return [Item(operation, dtype, setting) for (operation, dtype), setting in itertools.product(WANTED, settings)]


def about(item: Item) -> Row:
    """What is measured."""
    row: Row = {"operation": item.operation.name, "dtype": str(item.dtype)}
    return row | {"block": item.setting.block, "warps": item.setting.num_warps}


def key_of(row: Row) -> Key:
    """Of a row, fresh or read from the file."""
    return tuple(str(row[column]) for column in ("operation", "dtype", "block", "warps"))


def key(item: Item) -> Key:
    """Of the row that an item becomes."""
    return key_of(about(item))


def use(setting: Setting) -> None:
    """From now on all sums are cut so."""
    tuned.setting_of = lambda *asked: setting  # type: ignore[assignment]
    launch.variant_of.cache_clear()


def compile_one(item: Item) -> None:
    """In a process of its own: puts one setting into Triton's cache on the disk."""
    use(item.setting)
    fused(workload(item.operation, random_gradients(SMALL, item.dtype, torch.device("cuda", 0))), "triton")()
    torch.cuda.synchronize()


def compile_all(missing: Sequence[Item]) -> None:
    """So that measuring waits for no compiler."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(min(10, os.cpu_count() or 1), context) as pool:
        list(pool.map(compile_one, missing, chunksize=max(1, len(missing) // 10)))


def quicker_settings(rows: Iterable[Mapping[str, object]]) -> dict[tuple[Operation, int], Quicker]:
    """By operation and bytes of an element, the quickest setting whose interval lies wholly below the usual one's.

    Args:
        rows: Of a file of results.
    """
    found: dict[tuple[Operation, int], Quicker] = {}
    by_list: dict[tuple[Operation, torch.dtype], dict[Setting, Mapping[str, object]]] = {}
    for row in rows:
        dtype = getattr(torch, str(row["dtype"]).removeprefix("torch."))
        of_list = by_list.setdefault((Operation[str(row["operation"])], dtype), {})
        of_list[Setting(int(str(row["block"])), int(str(row["warps"])))] = row
    for (operation, dtype), of_list in by_list.items():
        if (as_usual := of_list.get(usual(operation))) is None:
            continue
        better = {s: row for s, row in of_list.items() if _number(row, "ms_high") < _number(as_usual, "ms_low")}
        if better:
            best = min(better, key=lambda setting: _number(better[setting], "ms"))
            found[operation, dtype.itemsize] = Quicker(best, _number(better[best], "ms"), _number(as_usual, "ms"))
    return found


def entries(found: Mapping[tuple[Operation, int], Quicker]) -> Iterator[str]:
    """What stands of them in `tuned.py`, a line each.

    Args:
        found: By `quicker_settings`.
    """
    for (operation, element_size), one in found.items():
        less = 100 * (1 - one.ms / one.usual_ms)
        setting = f"Setting({one.setting.block}, {one.setting.num_warps})"
        entry = f"(Operation.{operation.name}, {element_size}): {setting},"
        yield f"{entry}  # {one.ms:.4f} ms for {one.usual_ms:.4f}: {less:.1f} % less"


def measured(item: Item, work: Workload, clock: Clock, bytes_per_second: float, rounds: int) -> Row:
    """The row of an item.

    Args:
        item: What is measured.
        work: Its lists.
        clock: Of the device.
        bytes_per_second: Of a pass that only reads.
        rounds: Of calls.
    """
    use(item.setting)
    call = fused(work, "triton")
    clock.warm_up(call)
    seconds = median_interval(clock.measure({"call": call}, rounds)["call"].work)
    return about(item) | {
        "ms": 1e3 * seconds.value,
        "ms_low": 1e3 * seconds.low,
        "ms_high": 1e3 * seconds.high,
        "of_roofline": work.num_bytes / seconds.value / bytes_per_second,
        "gb_per_s": work.num_bytes / seconds.value / 1e9,
        "status": MEASURED,
    }


def main() -> None:
    """Compile, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="a setting that is not begun by then is left out")
    parser.add_argument("--again", action="store_true", help="also settings that this very code has measured")
    arguments = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    is_short = IS_SMOKE or device.type == "cpu"
    kept = Items(
        "gpu_tuning", device, key_of, command=COMMAND, seconds=arguments.seconds, is_again=arguments.again,
        is_written=not is_short,
    )  # fmt: skip
    missing = kept.missing(items(SETTINGS[:1] if is_short else SETTINGS), key)
    if missing:
        measure_all(missing, kept, device, is_short=is_short)
    print(f"entries of tuned.py for {tuned.capability_of(device)}, all others as usual:")
    for line in entries(quicker_settings(kept.rows)):
        print(line)
    kept.end()


def measure_all(missing: Sequence[Item], kept: Items, device: torch.device, *, is_short: bool) -> None:
    """All items for which there is time, one list of gradients after the other.

    Args:
        missing: What to measure.
        kept: Where it goes.
        device: On which all is measured.
        is_short: Small lists, whose times say nothing.
    """
    if device.type == "cuda":
        compile_all(missing)
        print(f"compiled {len(missing)} kernels, {kept.seconds_left():.0f} s left", flush=True)
    clock = Clock(device, 4096 if is_short else FLUSH_BYTES)
    roofline = Roofline(device, 8192 if is_short else None)
    read = roofline.passes[clock.quickest(roofline.passes)]
    seconds = median_interval(clock.measure({"read": read}, FEW_ROUNDS)["read"].work).value
    bytes_per_second = roofline.num_bytes / seconds
    print(f"roofline: {bytes_per_second / 1e9:.0f} GB/s", flush=True)
    work, of = None, None
    for item in kept.in_time(missing, key):
        if of != (item.operation, item.dtype):
            work = None  # before the next: both do not fit everywhere
            tensors = random_gradients(SMALL if is_short else llama_1b(), item.dtype, device)
            work, of = workload(item.operation, tensors), (item.operation, item.dtype)
        assert work is not None
        row = measured(item, work, clock, bytes_per_second, FEW_ROUNDS if is_short else ROUNDS)
        kept.add([row])
        print(f"{', '.join(key(item))}: {row['ms']:.4f} ms, {row['of_roofline']:.3f} of roofline", flush=True)


def _number(row: Mapping[str, object], column: str) -> float:
    return float(str(row[column]))


if __name__ == "__main__":
    main()
