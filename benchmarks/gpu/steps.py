"""Whole training steps of real models, watched and unwatched in turn (A-B-B-A); gpu_steps-<device>.csv.

GPT-2 small and a Llama of 1.3e9 at 2, 8 and 16 Ki tokens a micro-batch, eight micro-batches a step, bf16 by autocast,
AdamW; the most telling first. Without a GPU, or with `--smoke`, a tiny model shows that every row runs, FSDP2 over gloo
and what is compiled by PyTorch's operators; it fails where one does not.
"""

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.gpu.llama import LLAMA_1B3, Llama
from benchmarks.kernels.items import Items, Key
from benchmarks.kernels.results_table import MEASURED, Row
from benchmarks.smoke import IS_SMOKE
from benchmarks.step_overhead.benchmark_step_overhead import WARM_UP_STEPS, measure, row_of, show
from benchmarks.step_overhead.modes import Mode
from benchmarks.step_overhead.small_gpt import GPT2_SMALL, Size, SmallGPT
from noisescale.options import Arithmetic

COMMAND = "python benchmarks/gpu/steps.py"

NO_RATE = Mode("per layer, judge_rate=False", {"judge_rate": False})
TOTAL = Mode("total", {"groups": "none"})
LAYERS = Mode("per layer")
ADDED_UP = Mode("accumulate", {"arithmetic": Arithmetic(accumulate="fp32")})
BUDGET = Mode("overhead=0.01", {"overhead": 0.01})
PER_EXAMPLE = Mode("per example", {"small_batches": "per_example"})

MICRO_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Item:
    """One row.

    Attributes:
        model: Its name.
        tokens: A micro-batch.
        mode: How it is watched.
        bound: What watched to unwatched is to stay below.
        micro_batches: Of a step.
        compiled: Mode of `torch.compile`; "" trains eagerly.
        sharded: By FSDP2, over one process.
        rounds: Of A-B-B-A for each of two pairs of models.
        steps: A block.
        warm_up: Steps before: looks at the learning rate are dense in the first sixty, and one in sixteen behind.
    """

    model: str
    tokens: int
    mode: Mode
    bound: float = math.inf
    micro_batches: int = MICRO_BATCHES
    compiled: str = ""
    sharded: bool = False
    rounds: int = 3
    steps: int = 2
    warm_up: int = WARM_UP_STEPS


MODELS: dict[str, tuple[Size, Callable[[Size], nn.Module]]] = {
    "GPT-2 small": (GPT2_SMALL, SmallGPT),
    "Llama 1.3e9": (LLAMA_1B3, Llama),
}

KI = 1024

ITEMS = (
    Item("GPT-2 small", 2 * KI, NO_RATE, 1.01, rounds=12, steps=1),
    Item("GPT-2 small", 2 * KI, LAYERS, 1.01, rounds=12, steps=1, warm_up=70),
    Item("GPT-2 small", 2 * KI, LAYERS, 1.01, rounds=12, steps=1),
    Item("GPT-2 small", 16 * KI, LAYERS, 1.002, rounds=4, steps=1),
    Item("Llama 1.3e9", 2 * KI, NO_RATE, 1.01, rounds=6, steps=1),
    Item("Llama 1.3e9", 8 * KI, NO_RATE, 1.01, rounds=3, steps=1),
    Item("GPT-2 small", 16 * KI, NO_RATE, 1.002, rounds=4, steps=1),
    Item("GPT-2 small", 2 * KI, ADDED_UP, 1.01, rounds=12, steps=1),
    Item("GPT-2 small", 2 * KI, BUDGET, 1.01, rounds=2),
    Item("GPT-2 small", 16 * KI, PER_EXAMPLE, micro_batches=1, rounds=12, steps=1),
    Item("GPT-2 small", 2 * KI, LAYERS, 1.01, compiled="default", rounds=12, steps=1),
    Item("GPT-2 small", 2 * KI, LAYERS, 1.01, compiled="reduce-overhead", rounds=12, steps=1),
    Item("GPT-2 small", 2 * KI, LAYERS, 1.01, sharded=True, rounds=12, steps=1),
    Item("GPT-2 small", 8 * KI, NO_RATE, 1.01, rounds=6, steps=1),
    Item("GPT-2 small", 2 * KI, TOTAL, 1.01, rounds=12, steps=1),
    Item("Llama 1.3e9", 2 * KI, ADDED_UP, 1.01, rounds=6, steps=1),
    Item("Llama 1.3e9", 16 * KI, NO_RATE, 1.002, rounds=2, steps=1),
    Item("GPT-2 small", 16 * KI, ADDED_UP, 1.002, rounds=4, steps=1),
    Item("GPT-2 small", 8 * KI, ADDED_UP, 1.01, rounds=6, steps=1),
    Item("GPT-2 small", 2 * KI, BUDGET, 1.01, compiled="reduce-overhead", rounds=2),
    Item("GPT-2 small", 2 * KI, ADDED_UP, 1.01, compiled="reduce-overhead", rounds=12, steps=1),
    Item("GPT-2 small", 16 * KI, LAYERS, 1.002, compiled="reduce-overhead", rounds=4, steps=1),
    Item("Llama 1.3e9", 2 * KI, NO_RATE, 1.01, compiled="reduce-overhead", rounds=6, steps=1),
)
"""The most telling first. Steps of both models alternate, as a shared host's speed drifts within seconds."""

TINY = Size(width=16, depth=1, heads=2, vocabulary=32, context=8)


KEY = ("model", "tokens", "micro_batches", "compiled", "mode", "warm_up")
"""Columns that tell rows apart."""


def about(item: Item) -> Row:
    """What is measured."""
    row: Row = {"model": item.model, "tokens": item.tokens, "micro_batches": item.micro_batches}
    how = ", ".join([item.compiled or "eager", *(["FSDP2"] if item.sharded else [])])
    return row | {"compiled": how, "mode": item.mode.name, "warm_up": item.warm_up}


def key_of(row: Row) -> Key:
    """Of a row, fresh or read from the file."""
    return tuple(str(row[column]) for column in KEY)


def key(item: Item) -> Key:
    """Of the row that an item becomes."""
    return key_of(about(item))


def row(item: Item, device: torch.device, *, is_tiny: bool) -> Row:
    """One item, measured or with the reason why not."""
    size, make = MODELS[item.model]
    size, tokens = (TINY, 16) if is_tiny else (size, item.tokens)

    def measured() -> object:
        return measure(
            item.mode,
            size,
            tokens,
            1 if is_tiny else item.rounds,
            1 if is_tiny else item.steps,
            device,
            micro_batches=item.micro_batches,
            compiled=item.compiled,
            sharded=item.sharded,
            make=make,
            warm_up=2 if is_tiny else item.warm_up,
        )

    found = row_of(item.mode, measured, math.inf if is_tiny else item.bound)  # type: ignore[arg-type]
    return about(item) | {"tokens": tokens} | found


def main(items: Sequence[Item] = ITEMS) -> None:
    """Measure in order until the time is over, print and write.

    Args:
        items: What to measure.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=480, help="a row that is not begun by then is left out")
    parser.add_argument("--again", action="store_true", help="also rows that this very code has measured")
    parser.add_argument("--tiny", action="store_true", help="all rows at a size that says nothing; writes nothing")
    arguments = parser.parse_args()
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    is_tiny = IS_SMOKE or arguments.tiny or device.type == "cpu"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kept = Items(
        "gpu_steps", device, key_of, command=COMMAND, seconds=arguments.seconds, is_again=arguments.again,
        is_written=not is_tiny,
    )  # fmt: skip
    faults = 0
    for item in kept.in_time(kept.missing(items, key), key):
        began = time.monotonic()
        found = row(item, device, is_tiny=is_tiny)
        kept.add([found])
        faults += found["status"] != MEASURED
        show(found)
        print(f"  {found['compiled']}, {time.monotonic() - began:.1f} s", flush=True)
        gc.collect()
        if device.type == "cuda":
            torch.compiler.reset()
            torch.cuda.empty_cache()
    if is_tiny and faults:
        sys.exit(f"{faults} of {len(items)} do not run")
    kept.end()


if __name__ == "__main__":
    main()
