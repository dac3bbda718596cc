"""Squared norms of each example's weight gradient against the matrix product that makes the gradient itself.

Batches of 16 sequences of 1,024 positions in bf16, of the Linear layers of GPT-2 small and of a Llama of 1.3e9; every
size of tile; gpu_outer_products-<device>.csv. Without a GPU, or with `--smoke`, one small shape shows that it runs.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.kernels.intervals import median_interval, ratio_interval
from benchmarks.kernels.items import Items, Key
from benchmarks.kernels.results_table import MEASURED, Row
from benchmarks.kernels.timing import Clock
from benchmarks.smoke import IS_SMOKE
from noisescale.capture.per_example.outer_products import directly
from noisescale.kernels.outer_sq_norms import fused_outer_sq_norms
from noisescale.kernels.outer_sq_norms.launch import Tile, tile_of

COMMAND = "python benchmarks/gpu/outer_products.py"

SHAPES = ((768, 768), (2304, 768), (3072, 768), (768, 3072), (2048, 2048), (8192, 2048), (50257, 768))
"""Outputs and inputs of a Linear."""

TILES = (
    Tile(128, 256, 32, 8, 4),
    Tile(128, 256, 32, 8, 5),
    Tile(128, 256, 32, 8, 6),
    Tile(128, 256, 64, 8, 3),
    Tile(128, 256, 64, 8, 4),
    Tile(256, 128, 32, 8, 5),
    Tile(128, 128, 64, 4, 3),
    Tile(128, 128, 32, 4, 4),
    Tile(128, 128, 32, 4, 6),
    Tile(64, 256, 32, 4, 4),
)

NUM_EXAMPLES, NUM_POSITIONS = 16, 1024
ROUNDS = 5
WEIGHT_GRADIENT = "weight gradient, torch.mm"
MOST_RATIO = 1.15


def rows_of(
    num_outputs: int, num_inputs: int, device: torch.device, clock: Clock, examples: int, positions: int
) -> list[Row]:
    """One row for each way to the norms, with the ratio to the weight's gradient."""
    g = torch.randn(examples, positions, num_outputs, device=device).bfloat16()
    a = torch.randn(examples, positions, num_inputs, device=device).bfloat16()
    calls: dict[str, Callable[[], Tensor]] = {WEIGHT_GRADIENT: lambda: torch.mm(g.flatten(0, 1).t(), a.flatten(0, 1))}
    calls["product in memory, torch.bmm in bf16"] = lambda: torch.bmm(g.transpose(1, 2), a).float().square().sum((1, 2))
    if device.type == "cuda":
        calls["noisescale"] = lambda: fused_outer_sq_norms(g, a)
        calls |= {f"noisescale, {tile}": lambda tile=tile: fused_outer_sq_norms(g, a, tile) for tile in TILES}
    if num_outputs * num_inputs <= 4e6:  # in fp32, as before there was a kernel: seconds for a large one
        calls["noisescale, PyTorch's operators in fp32"] = lambda: directly(g.float(), a.float())
    faults: dict[str, str] = {}
    for name, call in list(calls.items()):
        try:
            clock.warm_up(call)
        except Exception as fault:
            faults[name] = f"not measured: {type(fault).__name__}: {str(fault).splitlines()[0][:120]}"
            del calls[name]
    times = clock.measure(calls, 3 if IS_SMOKE else ROUNDS)
    shape: Row = {"outputs": num_outputs, "inputs": num_inputs, "examples": examples, "positions": positions}
    rows: list[Row] = [{**shape, "way": name, "status": said} for name, said in faults.items()]
    pairs = {
        name: [statistics.fmean(pair) for pair in zip(t.work[::2], t.work[1::2], strict=True)]
        for name, t in times.items()
    }
    for name, seconds in pairs.items():
        microseconds = median_interval([1e6 * value for value in times[name].work])
        ratio = ratio_interval([x / y for x, y in zip(seconds, pairs[WEIGHT_GRADIENT], strict=True)])
        row: Row = {**shape, "way": name, "device_us": microseconds.value, "device_us_low": microseconds.low}
        row |= {"device_us_high": microseconds.high, "ratio_to_weight_gradient": ratio.value, "ratio_low": ratio.low}
        row |= {
            "ratio_high": ratio.high,
            "tflops": 2e-12 * examples * positions * num_outputs * num_inputs / min(seconds),
        }
        is_ours = name == "noisescale" and device.type == "cuda"
        row |= {"tile": str(tile_of(positions, num_outputs, num_inputs)) if is_ours else "", "status": MEASURED}
        row |= {"misses": f"{ratio.value:.3g} > {MOST_RATIO}" if is_ours and ratio.value > MOST_RATIO else ""}
        rows.append(row)
    return rows


def key_of(row: Row) -> Key:
    """All ways to the norms of one shape are one item."""
    return str(row["outputs"]), str(row["inputs"])


def key(shape: tuple[int, int]) -> Key:
    """Of the rows that a shape becomes."""
    return str(shape[0]), str(shape[1])


def main() -> None:
    """Measure all shapes, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240, help="a shape that is not begun by then is left out")
    parser.add_argument("--again", action="store_true", help="also shapes that this very code has measured")
    arguments = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    is_short = IS_SMOKE or device.type == "cpu"
    kept = Items(
        "gpu_outer_products", device, key_of, command=COMMAND, seconds=arguments.seconds, is_again=arguments.again,
        is_written=not is_short,
    )  # fmt: skip
    shapes = kept.missing(SHAPES[:1] if is_short else SHAPES, key)
    if not shapes:
        return
    clock = Clock(device, 4096 if is_short else 2**28)
    examples, positions = (2, 16) if is_short else (NUM_EXAMPLES, NUM_POSITIONS)
    for shape in kept.in_time(shapes, key):
        rows = rows_of(*shape, device, clock, examples, positions)
        kept.add(rows)
        for row in rows:
            numbers = (
                f"{row['device_us']:>9.1f} us  {row['ratio_to_weight_gradient']:.3f}  {row['tflops']:.0f} TFLOP/s"
                if "device_us" in row
                else ""
            )
            line = f"{shape[0]:>6} x {shape[1]:<5} {row['way']:<100} {numbers} {row['status']} {row.get('misses', '')}"
            print(line.rstrip(), flush=True)
    kept.end()


if __name__ == "__main__":
    main()
