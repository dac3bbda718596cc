"""A finite data set whose per-example gradients are all known: truth is exact, batches are drawn with replacement."""

# N examples of the data set, R replicates, B examples of a batch, L leaves, D coordinates

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from benchmarks.truth.step import Array, Step, make_step, sq_norm

CHUNK_VALUES = 8_000_000


@dataclass(frozen=True, slots=True)
class Population:
    """Frozen parameters: every example's gradient is a row.

    Attributes:
        name: As tables call it.
        gradients: [N, D].
        batch_size: Examples a step.
        num_steps: Steps in the window.
        tensors: The coordinates of each parameter tensor.
        group_counts: The K for which a step has groups.
    """

    name: str
    gradients: Array
    batch_size: int
    num_steps: int
    tensors: tuple[slice, ...] = (slice(None),)
    group_counts: tuple[int, ...] = (2, 8, 32)

    is_moving: ClassVar[bool] = False

    @property
    def replicates_at_once(self) -> int:
        """As many as keep the largest array small."""
        return max(1, CHUNK_VALUES // (self.group_counts[-1] * self.gradients.shape[1]))

    def terms(self) -> tuple[float, float]:
        """Exact tr Σ and |G|² over the data set."""
        mean = self.gradients.mean(0, dtype=np.float64)
        grad_sq_norm = float(mean @ mean)
        return float(sq_norm(self.gradients.astype(np.float64)).mean()) - grad_sq_norm, grad_sq_norm

    def steps(self, replicates: int, seed: int) -> Iterator[Step]:
        """The steps of so many independent measurements."""
        generator = torch.Generator().manual_seed(seed)
        rows = torch.as_tensor(self.gradients, dtype=torch.float32)
        row_sq_norms = sq_norm(self.gradients.astype(np.float64))
        trace_cov, grad_sq_norm = self.terms()
        num_leaves = self.group_counts[-1]
        for _ in range(self.num_steps):
            index = torch.randint(len(rows), (replicates, self.batch_size), generator=generator)
            leaves = functional.embedding_bag(index.reshape(replicates * num_leaves, -1), rows, mode="mean")
            yield make_step(
                leaves.numpy().reshape(replicates, num_leaves, -1),
                batch_size=self.batch_size,
                per_example_sq_norm=row_sq_norms[index.numpy()].mean(1),
                trace_cov=np.full(replicates, trace_cov),
                grad_sq_norm=np.full(replicates, grad_sq_norm),
                group_counts=self.group_counts,
                tensors=self.tensors,
            )


def rotate(gradients: Array, coordinates: int = 512) -> Array:
    """The rows in the directions that hold most of their squared norms, fp32.

    Many directions hold nothing to speak of; the rows so written are a population with an exact truth of its own.
    """
    wide = torch.as_tensor(gradients).double()
    values, vectors = torch.linalg.eigh(wide @ wide.T)
    largest = slice(max(0, len(values) - coordinates), None)
    return np.asarray((vectors[:, largest] * values[largest].clamp(min=0).sqrt()).float().numpy())
