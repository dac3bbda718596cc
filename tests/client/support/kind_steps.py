"""Steps of small batches with known gradients, fed to a kind as the accumulation feeds it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale_core.estimators.noise_scale import Terms


def feed(
    kind, parameters: Sequence[Tensor], gradients: Sequence[Sequence[Tensor | None]], sizes: Sequence[float]
) -> Terms | None:
    """The terms of one step.

    Args:
        kind: A `Kind`.
        parameters: Their `grad` is set.
        gradients: Of each small batch the mean gradient of each parameter; None: it had none.
        sizes: Examples of the small batches.
    """
    total = sum(sizes)
    kind.clear()
    for parameter in parameters:
        parameter.grad = None
    for of_batch, size in zip(gradients, sizes, strict=True):
        shares = [None if g is None else (g * (size / total)) for g in of_batch]
        present = [index for index, share in enumerate(shares) if share is not None]
        kind.add(present[::2], [shares[index] for index in present[::2]])
        kind.add(present[1::2], [shares[index] for index in present[1::2]])
        kind.end_small_batch(size)
        for parameter, share in zip(parameters, shares, strict=True):
            if share is not None:
                parameter.grad = share.clone() if parameter.grad is None else parameter.grad + share
    values = kind.values(scale=1.0)
    assert (values.dim(), values.dtype) == (1, torch.float64)
    return kind.terms(values.tolist(), num_small_batches=len(sizes), batch_size=total)


def gaussian_gradients(
    mean: Sequence[Tensor], noise: Sequence[Tensor], sizes: Sequence[float], generator: torch.Generator
) -> list[list[Tensor]]:
    """Mean gradients of small batches: independent coordinates with these means and these deviations of one example."""
    return [
        [
            m + s * torch.randn(m.shape, generator=generator, dtype=m.dtype) / size**0.5
            for m, s in zip(mean, noise, strict=True)
        ]
        for size in sizes
    ]


def feed_many(
    kind,
    parameters: Sequence[Tensor],
    mean: Sequence[Tensor],
    noise: Sequence[Tensor],
    sizes: Sequence[float],
    *,
    num_steps: int,
) -> list[Terms]:
    """The terms of the steps that have some, each step with its own Gaussian gradients."""
    generator = torch.Generator().manual_seed(7)
    steps = [feed(kind, parameters, gaussian_gradients(mean, noise, sizes, generator), sizes) for _ in range(num_steps)]
    return [terms for terms in steps if terms is not None]
