"""How the sums of lists are best cut on this device: every block and number of warps; gpu_tuning-<device>.csv.

The sets are a Llama's 1.24e9 gradients; each setting is compiled in a process of its own beforehand, many at a time.
What is best goes into `noisescale/kernels/multi_tensor/tuned.py` by hand, with this file as its source.
"""

import argparse
import concurrent.futures
import itertools
import multiprocessing
import os
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.kernels.contenders import fused
from benchmarks.kernels.intervals import median_interval
from benchmarks.kernels.results_table import MEASURED, Row, results_name, versions
from benchmarks.kernels.roofline import Roofline
from benchmarks.kernels.tensor_sets import TensorSet, llama_1b
from benchmarks.kernels.timing import Clock
from benchmarks.kernels.workload import random_gradients, workload
from benchmarks.results_file import write_rows
from benchmarks.smoke import IS_SMOKE
from noisescale.kernels.multi_tensor import launch
from noisescale.kernels.operations import Operation

COMMAND = "python benchmarks/gpu/tuning.py"

BLOCKS, WARPS = (1024, 2048, 4096, 8192), (4, 8, 16)
WANTED = (
    (Operation.SQ_NORMS, torch.bfloat16),
    (Operation.SQ_NORMS, torch.float32),
    (Operation.ACCUMULATE, torch.bfloat16),
    (Operation.DOTS, torch.float32),
)
SMALL = TensorSet("small", ((5000,), (70_000,)))
ROUNDS = 4


def use(block: int, warps: int) -> None:
    """From now on sums are cut so."""
    launch.block_of = lambda operation: block  # type: ignore[assignment]
    launch.OPTIONS["num_warps"] = warps


def compile_one(setting: tuple[int, int, int, str]) -> None:
    """In a process of its own: puts one setting into Triton's cache on the disk."""
    block, warps, operation, dtype = setting
    use(block, warps)
    gradients = random_gradients(SMALL, getattr(torch, dtype), torch.device("cuda", 0))
    fused(workload(Operation(operation), gradients), "triton")()
    torch.cuda.synchronize()


def main() -> None:
    """Compile, measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="a setting that is not begun by then is left out")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("not measured: needs a CUDA device")
        return
    device, start = torch.device("cuda", 0), time.monotonic()
    settings = [(b, w) for b, w in itertools.product(BLOCKS, WARPS) if 8 <= b // (32 * w) <= 64]
    settings = settings[:2] if IS_SMOKE else settings
    tasks = [(b, w, int(o), str(d).removeprefix("torch.")) for b, w in settings for o, d in WANTED]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(min(10, os.cpu_count() or 1), context) as pool:
        list(pool.map(compile_one, tasks, chunksize=max(1, len(tasks) // 10)))
    print(f"compiled {len(tasks)} kernels in {time.monotonic() - start:.0f} s", flush=True)
    clock, roofline = Clock(device), Roofline(device)
    quickest = clock.quickest(roofline.passes)
    read = median_interval(clock.measure({"read": roofline.passes[quickest]}, 5)["read"].work).value
    bytes_per_second = roofline.num_bytes / read
    print(f"roofline: {bytes_per_second / 1e9:.0f} GB/s by {quickest}", flush=True)
    rows: list[Row] = []
    for operation, dtype in WANTED:
        work = workload(operation, random_gradients(llama_1b(), dtype, device))
        for block, warps in settings:
            if time.monotonic() - start > arguments.seconds:
                print("no time left")
                break
            use(block, warps)
            call = fused(work, "triton")
            clock.warm_up(call)
            seconds = median_interval(clock.measure({"call": call}, ROUNDS)["call"].work)
            share = work.num_bytes / seconds.value / bytes_per_second
            rows.append(
                {
                    "operation": operation.name,
                    "dtype": str(dtype),
                    "block": block,
                    "warps": warps,
                    "ms": 1e3 * seconds.value,
                    "ms_low": 1e3 * seconds.low,
                    "ms_high": 1e3 * seconds.high,
                    "of_roofline": share,
                    "gb_per_s": work.num_bytes / seconds.value / 1e9,
                    "status": MEASURED,
                }
            )
            setting = f"{operation.name:<12} {dtype} block {block:>5} warps {warps:>2}"
            print(f"{setting}: {1e3 * seconds.value:.4f} ms, {share:.3f} of roofline", flush=True)
        del work
        torch.cuda.empty_cache()
    write_rows(results_name("gpu_tuning", device), rows, command=COMMAND, about=versions(device))


if __name__ == "__main__":
    main()
