"""Both terms of kinds sign and spectral against exact truth, from 0.1 to 100 times the noise scale; what kinds cost."""

# K small batches

import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.results_file import Figure, write
from benchmarks.smoke import size
from benchmarks.truth.digits_mlp import LATE, MIDDLE, START, Point
from demo import digits
from noisescale.capture.kinds.adam import AdamKind
from noisescale.capture.kinds.sign import SignKind
from noisescale.capture.kinds.spectral import SpectralKind, gram_of_shorter_side, trace_of_root
from noisescale_core.estimators.dual_norm_noise_scale import (
    MIN_STEPS,
    DualNorms,
    deviation_from_halves,
    deviation_from_roots,
)

RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
STEPS = size(120, MIN_STEPS + 4)
SMALL_BATCHES = 8


@dataclass(frozen=True, slots=True)
class Target:
    """A distribution of gradients with known truth.

    Attributes:
        name: As figures call it.
        draw: Mean gradients of K small batches with so many examples each: [K][parameter].
        mean: G of each parameter.
        deviation: Σ σ_i over all coordinates.
        root: Σ tr V^½ over the matrices; None without any.
        num_small_batches: K.
        is_sampled: Examples come whole.
    """

    name: str
    draw: Callable[[float, torch.Generator], list[list[Tensor]]]
    mean: Sequence[Tensor]
    deviation: float
    root: float | None
    num_small_batches: int = SMALL_BATCHES
    is_sampled: bool = False


def gaussian_target(name: str, mean: Tensor, noise: Tensor) -> Target:
    """Independent Gaussian coordinates."""

    def draw(size: float, generator: torch.Generator) -> list[list[Tensor]]:
        drawn = torch.randn(SMALL_BATCHES, *mean.shape, generator=generator, dtype=mean.dtype)
        return [[mean + noise * z / size**0.5] for z in drawn]

    return Target(name, draw, [mean], float(noise.sum()), None)


def gaussian_targets() -> Iterator[Target]:
    """Signal and noise alike everywhere, and related in several ways in which they are not."""
    generator = torch.Generator().manual_seed(0)
    d = 20_000
    normal = [torch.randn(d, generator=generator, dtype=torch.float64) for _ in range(4)]
    noise = normal[0].exp()
    rank = torch.arange(1, d + 1, dtype=torch.float64)
    yield gaussian_target("one width", noise * normal[1], noise)
    yield gaussian_target("log-normal widths, s = 0.5", noise * normal[1] * (0.5 * normal[2]).exp(), noise)
    yield gaussian_target("log-normal widths, s = 1", noise * normal[1] * normal[2].exp(), noise)
    yield gaussian_target("power laws 1/i and 1/sqrt(i)", normal[1].sign() / rank, rank**-0.5)
    yield gaussian_target("equal sizes", noise * normal[1].sign(), noise)
    yield gaussian_target("1 % of the coordinates", noise * normal[1] * (normal[3] > 2.326), noise)


def few_rows_target(num_rows: int, num_small_batches: int) -> Target:
    """A 20 x 12 matrix whose noise sits in few rows, so that V rests on few vectors."""
    generator = torch.Generator().manual_seed(0)
    noise = 0.5 + torch.rand(20, 12, generator=generator, dtype=torch.float64)
    mean = noise * torch.randn(20, 12, generator=generator, dtype=torch.float64)
    noise[num_rows:] = 0

    def draw(size: float, generator: torch.Generator) -> list[list[Tensor]]:
        drawn = torch.randn(num_small_batches, 20, 12, generator=generator, dtype=torch.float64)
        return [[mean + noise * z / size**0.5] for z in drawn]

    root = float(noise.square().sum(0).sqrt().sum())
    name = f"noise in {num_rows} of 20 rows, K = {num_small_batches}"
    return Target(name, draw, [mean], float(noise.sum()), root, num_small_batches)


def digits_target(name: str, point: Point) -> Target:
    """All images of the digits data set at one point of a training, drawn with replacement."""
    model = point.train()
    images, labels = digits.load()
    weights = {key: value.detach().double() for key, value in model.named_parameters()}

    def loss(weights: dict[str, Tensor], image: Tensor, label: Tensor) -> Tensor:
        output: Tensor = functional_call(model, weights, (image[None],))
        return nn.functional.cross_entropy(output, label[None])

    each = list(vmap(grad(loss), in_dims=(None, 0, 0))(weights, images.double(), labels).values())
    mean = [g.mean(0) for g in each]
    num = len(images)

    def draw(size: float, generator: torch.Generator) -> list[list[Tensor]]:
        counts = torch.stack(
            [
                torch.bincount(torch.randint(num, (round(size),), generator=generator), minlength=num)
                for _ in range(SMALL_BATCHES)
            ]
        ).double()
        means = [(counts @ g.flatten(1) / round(size)).unflatten(1, g.shape[1:]) for g in each]
        return [[m[k] for m in means] for k in range(SMALL_BATCHES)]

    root = 0.0
    for g, m in zip(each, mean, strict=True):
        if g.dim() == 3:
            root += float(trace_of_root(torch.stack([gram_of_shorter_side(x - m) for x in g]).sum(0) / num))
    deviation = sum(float((g - m).square().mean(0).sqrt().sum()) for g, m in zip(each, mean, strict=True))
    return Target(name, draw, mean, deviation, root, is_sampled=True)


@dataclass(frozen=True, slots=True)
class Geometry:
    """A kind, and how its values read.

    Attributes:
        make: A kind for these parameters.
        read: Its values, the batch size and K as dual norms.
        root: The deviation before it is extrapolated, from values and batch size; None where nothing is.
        norm: The dual norm of one parameter's gradient.
    """

    name: str
    make: Callable[[Sequence[Tensor]], SignKind | SpectralKind]
    read: Callable[[Sequence[float], float, int], DualNorms]
    norm: Callable[[Tensor], float]
    root: Callable[[Sequence[float], float], float] | None = None


def read_sign(values: Sequence[float], batch_size: float, _: int) -> DualNorms:
    """From [|a - b|₁, U, L, both shares]."""
    distance, upper, lower, share_a, share_b = values
    noise = deviation_from_halves(distance=distance, share_a=share_a, share_b=share_b, batch_size=batch_size)
    return DualNorms(noise, upper, lower)


def read_spectral(values: Sequence[float], batch_size: float, num_small_batches: int) -> DualNorms:
    """From four roots, U and L."""
    two, first, second, every, upper, lower = values
    noise = deviation_from_roots(two=two, first=first, second=second, every=every, num_small_batches=num_small_batches)
    return DualNorms(noise * batch_size**0.5, upper, lower)


def plain_root(values: Sequence[float], batch_size: float) -> float:
    """Of the V of all small batches."""
    return values[3] * batch_size**0.5


def nuclear_norm(gradient: Tensor) -> float:
    """Sum of the singular values of a matrix; a vector counts for nothing."""
    return float(torch.linalg.svdvals(gradient).sum()) if gradient.dim() == 2 else 0.0


SIGN = Geometry("sign", SignKind, read_sign, lambda gradient: float(gradient.abs().sum()))
SPECTRAL = Geometry("spectral", lambda p: SpectralKind(p, every=1), read_spectral, nuclear_norm, plain_root)


@dataclass(slots=True)
class Outcome:
    """What the steps at one batch size gave."""

    norms: list[DualNorms]
    sum_plain_root: float = 0.0
    sum_plug_in: float = 0.0
    num_terms: int = 0


def run(geometry: Geometry, target: Target, size: float) -> Outcome:
    """Measure steps of K small batches of `size` examples."""
    kind, num = geometry.make(target.mean), target.num_small_batches
    generator = torch.Generator().manual_seed(1)
    outcome = Outcome([])
    for _ in range(STEPS):
        gradients = target.draw(size, generator)
        kind.clear()
        for of_batch in gradients:
            kind.add(range(len(of_batch)), [g / num for g in of_batch])
            kind.end_small_batch(size)
        values, batch_size = kind.values(scale=1.0).tolist(), num * size
        terms = kind.terms(values, num_small_batches=num, batch_size=batch_size)
        outcome.num_terms += terms is not None
        outcome.norms.append(geometry.read(values, batch_size, num))
        if geometry.root is not None:
            outcome.sum_plain_root += geometry.root(values, batch_size)
        mean = [sum(parts) / num for parts in zip(*gradients, strict=True)]
        outcome.sum_plug_in += sum(map(geometry.norm, mean)) ** 2
    return outcome


def figures_of(geometry: Geometry, target: Target, deviation: float) -> Iterator[Figure]:
    """Both terms as they are before the gate, the plug-in |ḡ|², and how many steps pass the gate."""
    mean_norm = sum(map(geometry.norm, target.mean))
    scale = (deviation / mean_norm) ** 2
    yield Figure(f"{geometry.name}, {target.name}: noise scale", scale, "examples")
    for ratio in RATIOS:
        size = ratio * scale / target.num_small_batches
        if target.is_sampled:
            size = max(1, round(size))
        outcome = run(geometry, target, size)
        pairs = list(itertools.pairwise(outcome.norms))
        numerator = sum(last.noise * this.noise for last, this in pairs) / len(pairs) / deviation**2
        denominator = sum(last.upper * this.lower for last, this in pairs) / len(pairs) / mean_norm**2
        at = f"{geometry.name}, {target.name}, B = {ratio:g} x"
        yield Figure(f"{at}: numerator / truth", numerator, "ratio")
        noise = [norms.noise for norms in outcome.norms]
        excess = statistics.variance(noise) / statistics.mean(noise) ** 2
        yield Figure(f"{at}: what a square within one step would be too large by", excess, "share")
        if geometry.root is not None:
            plain = (outcome.sum_plain_root / STEPS / deviation) ** 2
            yield Figure(f"{at}: numerator without extrapolation / truth", plain, "ratio")
        yield Figure(f"{at}: denominator / truth", denominator, "ratio", "within 3 where steps have terms")
        yield Figure(f"{at}: plug-in / truth", outcome.sum_plug_in / STEPS / mean_norm**2, "ratio")
        yield Figure(f"{at}: steps with terms", outcome.num_terms / (STEPS - MIN_STEPS), "share")


def costs() -> Iterator[Figure]:
    """Time of one step with each kind, for four matrices and 8 small batches."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(512, 512, bias=False) for _ in range(4)])
    parameters, inputs = list(model.parameters()), torch.randn(256, 512)
    optimizer = torch.optim.AdamW(parameters)
    for _ in range(6):
        model(inputs).square().mean().backward()
        optimizer.step()

    def backward() -> None:
        optimizer.zero_grad()
        model(inputs).square().mean().backward()

    yield Figure("cost: forward and backward of 8 x 256 examples", 8 * seconds(backward) * 1e3, "ms")
    kinds = {
        "adam": AdamKind(parameters, optimizer),
        "sign": SignKind(parameters),
        "spectral": SpectralKind(parameters, every=1),
    }
    gradients = [p.grad for p in parameters if p.grad is not None]
    for name, kind in kinds.items():

        def step(kind: AdamKind | SignKind | SpectralKind = kind) -> None:
            kind.clear()
            for _ in range(SMALL_BATCHES):
                kind.add(range(4), gradients)
                kind.end_small_batch(256)
            kind.values(scale=1.0)

        yield Figure(f"cost: a measured step of kind {name}", seconds(step) * 1e3, "ms")


def seconds(call: Callable[[], None]) -> float:
    """Least of five."""
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def main() -> None:
    """Measure everything and write it."""
    torch.set_num_threads(1)
    figures = []
    for target in itertools.islice(gaussian_targets(), size(None, 1)):
        figures += figures_of(SIGN, target, target.deviation)
    for num_rows, num_small_batches in itertools.product(size((2, 3, 6), (2,)), size((4, 8, 16), (4,))):
        target = few_rows_target(num_rows, num_small_batches)
        assert target.root is not None
        figures += figures_of(SPECTRAL, target, target.root)
    for name, point in size((("start", START), ("middle", MIDDLE), ("late", LATE)), ()):
        target = digits_target(f"digits MLP {name}", point)
        figures += figures_of(SIGN, target, target.deviation)
        assert target.root is not None
        figures += figures_of(SPECTRAL, target, target.root)
    write("kinds", [*figures, *costs()])


if __name__ == "__main__":
    main()
