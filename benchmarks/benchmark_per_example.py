"""What per-example norms cost on the CPU: exact and by normalisations alone, against the plain forward and backward.

Then from which length of sequence on the product of output gradient and activation is quicker than Gram matrices.
"""

import copy
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.models import CausalTransformer
from benchmarks.results_file import Figure, write
from benchmarks.smoke import IS_SMOKE, size
from noisescale.capture.per_example.norms import PerExampleNorms
from noisescale.capture.per_example.outer_products import directly, gram_is_quicker_below, through_gram

BREAK_EVEN_SHAPES = size(((256, 256), (1024, 256), (768, 768), (3072, 768)), ((256, 256),))
NUM_EXAMPLES = 4
REPEATS = size(3, 1)


@dataclass(frozen=True, slots=True)
class Job:
    """A model and one micro-batch.

    Attributes:
        name: As figures call it.
        model: With normalisations, so that there is a proxy.
        inputs: Examples first.
        targets: Classes of all examples or tokens in a row.
        rounds: How often all variants take their turn.
        repeats: Backward passes in a turn.
    """

    name: str
    model: nn.Module
    inputs: Tensor
    targets: Tensor
    rounds: int
    repeats: int


def digits_job() -> Job:
    """The demo's MLP 64-64-10 with a normalisation, 32 images."""
    model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 10))
    return Job("digits MLP", model, torch.rand(32, 64), torch.randint(10, (32,)), rounds=60, repeats=10)


def transformer_job(length: int) -> Job:
    """256 characters in sequences of this length."""
    shape = (256 // length, length)
    return Job(
        f"3.2 M transformer, {shape[0]} x {length}",
        CausalTransformer(256),
        torch.randint(96, shape),
        torch.randint(96, (256,)),
        rounds=8,
        repeats=1,
    )


def raise_fault(fault: Exception) -> None:
    """A benchmark of a fault is none."""
    raise fault


def turn(job: Job, model: nn.Module, norms: PerExampleNorms | None) -> float:
    """Seconds of one forward and backward with its norms taken, averaged over a turn."""
    start = time.perf_counter()
    for _ in range(job.repeats):
        functional.cross_entropy(model(job.inputs), job.targets).backward()
        if norms is not None:
            assert norms.take() is not None
        model.zero_grad()
    return (time.perf_counter() - start) / job.repeats


def figures_of(job: Job) -> list[Figure]:
    """Cost of the variants, in turns that go there and back so that a drifting machine favours none."""
    variants: list[tuple[str, nn.Module, PerExampleNorms | None]] = [("plain", job.model, None)]
    for name, layers in (("exact norms", "all"), ("normalisations only", "norm_layers")):
        model = copy.deepcopy(job.model)
        parameters = dict(model.named_parameters())
        norms = PerExampleNorms(model, parameters, on_fault=raise_fault, layers=layers)  # type: ignore[arg-type]
        assert norms.message is None
        variants.append((name, model, norms))
    seconds: dict[str, list[float]] = {name: [] for name, _, _ in variants}
    for _, model, norms in variants:
        turn(job, model, norms)
    for number in range(job.rounds):
        for name, model, norms in variants if number % 2 else variants[::-1]:
            seconds[name].append(turn(job, model, norms))
    plain = statistics.median(seconds["plain"])
    figures = [Figure(f"{job.name}: forward and backward, median", 1e6 * plain, "us")]
    figures += [
        Figure(f"{job.name}: with {name}", statistics.median(seconds[name]) / plain, "x plain")
        for name, _, norms in variants
        if norms is not None
    ]
    return figures


def best_seconds(function: Callable[[], object]) -> float:
    """Seconds of the quickest of a few calls."""
    function()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def break_even(num_outputs: int, num_inputs: int) -> float:
    """Length of sequence at which both ways take as long, between two powers of two by log-linear interpolation."""
    before: tuple[int, float] | None = None
    for num_positions in (2**power for power in range(2, 10)):
        grad_output = torch.randn(NUM_EXAMPLES, num_positions, num_outputs)
        activation = torch.randn(NUM_EXAMPLES, num_positions, num_inputs)
        ratio = math.log(
            best_seconds(lambda g=grad_output, a=activation: through_gram(g, a))  # type: ignore[misc]
            / best_seconds(lambda g=grad_output, a=activation: directly(g, a))  # type: ignore[misc]
        )
        if ratio > 0:
            if before is None:
                return num_positions
            share = -before[1] / (ratio - before[1])
            return before[0] * (num_positions / before[0]) ** share
        before = (num_positions, ratio)
    return math.inf


def break_even_figures(shapes: Sequence[tuple[int, int]]) -> list[Figure]:
    """Measured break-even of each shape, and where the router puts it."""
    figures = []
    for num_outputs, num_inputs in shapes:
        name = f"linear {num_outputs} x {num_inputs}: length at which Gram and product take as long"
        routed = gram_is_quicker_below(num_outputs, num_inputs, torch.device("cpu"))
        figures.append(Figure(name, break_even(num_outputs, num_inputs), "positions", f"routed at {routed:.0f}"))
    return figures


def main() -> None:
    """Measure on one thread."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    jobs = [digits_job(), *(() if IS_SMOKE else (transformer_job(64), transformer_job(256)))]
    figures = [figure for job in jobs for figure in figures_of(job)]
    write("per_example", [*figures, *break_even_figures(BREAK_EVEN_SHAPES)])


if __name__ == "__main__":
    main()
