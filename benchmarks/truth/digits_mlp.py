"""The demo's digits MLP at points of its training: frozen, or trained on by R copies with exact truth at each step."""

# N examples of the data set, B of a batch, R replicates, L leaves, I inputs, H hidden, O outputs, D coordinates

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
from benchmarks.truth.population import Population, rotate
from benchmarks.truth.step import Array, Step, make_step
from demo import digits

CHUNK = 30


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a training by plain SGD from a fixed seed."""

    batch_size: int
    learning_rate: float
    steps: int

    def train(self) -> nn.Module:
        """The model there."""
        images, labels = digits.load()
        generator = torch.Generator().manual_seed(0)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            model = digits.make_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=self.learning_rate)
        for _ in range(self.steps):
            index = torch.randint(len(labels), (self.batch_size,), generator=generator)
            optimizer.zero_grad()
            digits.loss(model, (images[index], labels[index])).backward()
            optimizer.step()
        return model


START = Point(batch_size=256, learning_rate=0.1, steps=0)
MIDDLE = Point(batch_size=256, learning_rate=0.1, steps=200)
LATE = Point(batch_size=256, learning_rate=1.0, steps=114)
"""Here B is 100, and the errors of per-example norms and micro-batches are near those of the published table."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of R copies: [R, I, H], [R, 1, H], [R, H, O], [R, 1, O]."""

    first: Tensor
    first_bias: Tensor
    last: Tensor
    last_bias: Tensor

    @classmethod
    def copies(cls, model: nn.Module, replicates: int) -> "Weights":
        """R copies of a model."""
        first, first_bias, last, last_bias = (p.detach() for p in model.parameters())
        parts = (first.T[None], first_bias[None, None], last.T[None], last_bias[None, None])
        return cls(*(part.expand(replicates, -1, -1).contiguous() for part in parts))

    def minus(self, gradient: Tensor, learning_rate: float) -> "Weights":
        """After a step of plain SGD along flat gradients."""
        olds = (self.first, self.first_bias, self.last, self.last_bias)
        parts = gradient.split([old[0].numel() for old in olds], dim=1)
        return Weights(*(old - learning_rate * part.view_as(old) for old, part in zip(olds, parts, strict=True)))


@dataclass(frozen=True, slots=True)
class Factors:
    """What the per-example gradients of the two layers are outer products of, each [R, examples, size]."""

    pixels: Tensor
    delta_hidden: Tensor
    hidden: Tensor
    delta_out: Tensor

    @classmethod
    def of(cls, weights: Weights, images: Tensor, labels: Tensor) -> "Factors":
        """Forward and backward of cross-entropy, example by example."""
        before = images @ weights.first + weights.first_bias
        hidden = before.clamp(min=0)
        delta_out = torch.softmax(hidden @ weights.last + weights.last_bias, -1)
        delta_out = delta_out - functional.one_hot(labels, delta_out.shape[-1])
        return cls(images, (delta_out @ weights.last.mT) * (before > 0), hidden, delta_out)

    def sq_norms(self) -> Tensor:
        """|g_i|² of every example, [R, examples], fp64."""
        size = [(part.double() ** 2).sum(-1) for part in (self.pixels, self.delta_hidden, self.hidden, self.delta_out)]
        return (size[0] + 1) * size[1] + (size[2] + 1) * size[3]

    def mean_gradients(self, groups: int) -> Tensor:
        """Mean gradients of so many groups of neighbours, [R, groups, D]."""
        pixels, delta_hidden, hidden, delta_out = (
            part.unflatten(1, (groups, -1)) for part in (self.pixels, self.delta_hidden, self.hidden, self.delta_out)
        )
        count = pixels.shape[2]
        parts = (pixels.mT @ delta_hidden, delta_hidden.sum(2), hidden.mT @ delta_out, delta_out.sum(2))
        return torch.cat([part.flatten(2) for part in parts], dim=2) / count


@dataclass(frozen=True, slots=True)
class DigitsTraining:
    """R copies trained on from a point by SGD, each on batches of its own; truth over all images at every step."""

    name: str
    point: Point
    learning_rate: float
    batch_size: int = 256
    num_steps: int = 32
    group_counts: tuple[int, ...] = (2, 8, 32)

    is_moving: ClassVar[bool] = True
    replicates_at_once: ClassVar[int] = CHUNK

    def steps(self, replicates: int, seed: int) -> Iterator[Step]:
        """The steps of so many trainings."""
        generator = torch.Generator().manual_seed(seed)
        images, labels = digits.load()
        weights = Weights.copies(self.point.train(), replicates)
        for _ in range(self.num_steps):
            everything = Factors.of(weights, images[None].expand(replicates, -1, -1), labels[None])
            grad_sq_norm = (everything.mean_gradients(1)[:, 0].double() ** 2).sum(-1)
            trace_cov = everything.sq_norms().mean(1) - grad_sq_norm
            index = torch.randint(len(labels), (replicates, self.batch_size), generator=generator)
            batch = Factors.of(weights, images[index], labels[index])
            step = make_step(
                batch.mean_gradients(self.group_counts[-1]).numpy(),
                batch_size=self.batch_size,
                per_example_sq_norm=batch.sq_norms().mean(1).numpy(),
                trace_cov=trace_cov.numpy(),
                grad_sq_norm=grad_sq_norm.numpy(),
                group_counts=self.group_counts,
                tensors=parameter_slices(weights),
            )
            yield step
            weights = weights.minus(torch.as_tensor(step.gradient), self.learning_rate)


def parameter_slices(weights: Weights) -> tuple[slice, ...]:
    """The coordinates of each parameter tensor."""
    parts = (weights.first, weights.first_bias, weights.last, weights.last_bias)
    ends = np.cumsum([part[0].numel() for part in parts])
    return tuple(slice(int(end) - part[0].numel(), int(end)) for end, part in zip(ends, parts, strict=True))


def per_example_gradients(point: Point) -> tuple[Array, tuple[slice, ...]]:
    """Every image's gradient, [N, D], and the coordinates of each parameter tensor."""
    images, labels = digits.load()
    weights = Weights.copies(point.train(), 1)
    factors = Factors.of(weights, images[None], labels[None])
    return factors.mean_gradients(len(labels))[0].numpy(), parameter_slices(weights)


def frozen(name: str, point: Point, *, batch_size: int = 256, num_steps: int = 32) -> Population:
    """The data set at a frozen point, in the fewest coordinates."""
    gradients, _ = per_example_gradients(point)
    return Population(name, rotate(gradients), batch_size, num_steps)


def frozen_with_tensors(name: str, point: Point, *, batch_size: int = 256, num_steps: int = 32) -> Population:
    """The same with its parameter tensors, for formulas that tell them apart."""
    gradients, tensors = per_example_gradients(point)
    return Population(name, gradients, batch_size, num_steps, tensors=tensors)
