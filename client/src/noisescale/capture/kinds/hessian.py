"""Kind `hessian`: B_hessian = tr(H Σ) / (Gᵀ H G) by Hessian-vector products, at steps that the caller chooses.

Both terms are averages over pairs of small batches of gᵀ H g', so what holds for |g|² holds with H between: with
W = Σ p_k g_kᵀ H g_k and M = ḡᵀ H ḡ, tr(H Σ) = N (W - M) / (K - 1) and Gᵀ H G = M - tr(H Σ) / N are unbiased where H
comes from other examples than the gradients. Both may be negative: a Hessian need not be positive.
"""

import contextlib
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.noise_scale import Terms

Loss = Callable[[], Tensor]
Vector = list[Tensor]


def hessian_terms(
    parameters: Sequence[Tensor],
    losses: Sequence[Loss],
    curvature_loss: Loss | None = None,
    *,
    sizes: Sequence[float],
    buffers: Sequence[Tensor] = (),
) -> Terms:
    """Unbiased tr(H Σ), in `trace_cov`, and Gᵀ H G, in `grad_sq_norm`; waits for the device, unlike `hessian_values`.

    Args, errors and source as there.
    """
    trace, curvature = hessian_values(parameters, losses, curvature_loss, sizes=sizes, buffers=buffers).tolist()
    return Terms(trace_cov=trace, grad_sq_norm=curvature)


def hessian_values(
    parameters: Sequence[Tensor],
    losses: Sequence[Loss],
    curvature_loss: Loss | None = None,
    *,
    sizes: Sequence[float],
    buffers: Sequence[Tensor] = (),
) -> Tensor:
    """[tr(H Σ), Gᵀ H G], fp64, on the device of the first parameter.

    `p.grad`, the random numbers of torch, Python and NumPy, and the buffers given are afterwards what they were; a
    `torch.Generator` of the caller's own is not looked after. Hooks on the parameters do run. An operation whose own
    backward takes a precomputed gradient for a constant (some fused losses) leaves its curvature out, and nothing
    shows it: use the plain loss.

    With a curvature loss it costs K gradients and K Hessian-vector products, a few backward passes each. Without one
    each small batch in turn gives the H for all the others: K (K - 1) products, and K gradients are kept.

    Args:
        parameters: Over which the Hessian is taken; those that require no gradient are left out.
        losses: Each computes the mean loss of one small batch, a forward without backward; called once, or twice
            without a curvature loss.
        curvature_loss: The mean loss of examples that are in none of the small batches; None: leave one out.
        sizes: n_k, examples of the small batches.
        buffers: Of the model, such as BatchNorm's running statistics, which a forward changes.

    Raises:
        EstimationError: With fewer than 2 small batches, 3 without a curvature loss; for sizes that are not positive;
            where no parameter requires a gradient; for an operation that cannot be differentiated twice.

    Source: McCandlish et al. 2018, arXiv:1812.06162, equation 2.8; products after Pearlmutter 1994.
    """
    trained = [p for p in parameters if p.requires_grad]
    _check(trained, losses, curvature_loss, sizes)
    with _untouched(trained, buffers), torch.enable_grad(), _explained():
        if curvature_loss is not None:
            gradients = (_gradient(loss(), trained) for loss in losses)
            return _terms(_Curvature(curvature_loss(), trained), gradients, sizes)
        kept = [_gradient(loss(), trained) for loss in losses]
        total = torch.zeros(2, dtype=torch.float64, device=trained[0].device)
        for left_out, loss in enumerate(losses):
            others = [k for k in range(len(losses)) if k != left_out]
            terms = _terms(_Curvature(loss(), trained), (kept[k] for k in others), [sizes[k] for k in others])
            total += terms * (sizes[left_out] / sum(sizes))
        return total


class _Curvature:
    """The Hessian of one loss, as something to multiply by."""

    def __init__(self, loss: Tensor, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        gradient = torch.autograd.grad(loss, parameters, create_graph=True, allow_unused=True)
        # The gradient of a parameter that enters linearly, or not at all, has no derivative.
        self._rows = [(i, g) for i, g in enumerate(gradient) if g is not None and g.requires_grad]
        _refuse_dead_ends(g for _, g in self._rows)

    def times(self, vector: Vector) -> Vector:
        """H v."""
        if not self._rows:
            return [torch.zeros_like(p) for p in self._parameters]
        products = torch.autograd.grad(
            [g for _, g in self._rows],
            self._parameters,
            grad_outputs=[vector[i].to(g.dtype) for i, g in self._rows],
            retain_graph=True,
            allow_unused=True,
        )
        return _without_gaps(products, self._parameters)


def _terms(curvature: _Curvature, gradients: Iterator[Vector], sizes: Sequence[float]) -> Tensor:
    """[tr(H Σ), Gᵀ H G] of small batches that are independent of H; one gradient at a time."""
    num_examples = sum(sizes)
    within = mean = mean_product = None
    for gradient, size in zip(gradients, sizes, strict=True):
        share = size / num_examples
        product = curvature.times(gradient)
        quadratic = share * _dot(gradient, product)
        within = quadratic if within is None else within + quadratic
        mean = _added(mean, gradient, share)
        mean_product = _added(mean_product, product, share)
    assert within is not None
    assert mean is not None
    assert mean_product is not None
    big = _dot(mean, mean_product)
    trace = num_examples / (len(sizes) - 1) * (within - big)
    return torch.stack([trace, big - trace / num_examples])


def _gradient(loss: Tensor, parameters: Sequence[Tensor]) -> Vector:
    return _without_gaps(torch.autograd.grad(loss, parameters, allow_unused=True), parameters)


def _without_gaps(gradient: Sequence[Tensor | None], parameters: Sequence[Tensor]) -> Vector:
    return [torch.zeros_like(p) if g is None else g.detach() for g, p in zip(gradient, parameters, strict=True)]


def _added(total: Vector | None, vector: Vector, share: float) -> Vector:
    """The running mean in fp64: a difference of nearly equal numbers is to come."""
    if total is None:
        return [share * v.double() for v in vector]
    return [t.add_(v.double(), alpha=share) for t, v in zip(total, vector, strict=True)]


def _dot(left: Vector, right: Vector) -> Tensor:
    products = [(x.double() * y.double()).sum() for x, y in zip(left, right, strict=True)]
    return torch.stack([product.to(products[0].device) for product in products]).sum()


def _check(
    trained: Sequence[Tensor], losses: Sequence[Loss], curvature_loss: Loss | None, sizes: Sequence[float]
) -> None:
    if not trained:
        raise EstimationError("parameters must hold one that requires a gradient, got none: unfreeze some")
    fewest = 3 if curvature_loss is None else 2
    if len(losses) < fewest:
        raise EstimationError(
            f"losses must have at least {fewest} small batches, got {len(losses)}: use smaller ones"
            + (", or a curvature_loss" if curvature_loss is None else "")
        )
    if len(sizes) != len(losses) or not all(size > 0 for size in sizes):
        raise EstimationError(
            f"sizes must be the examples of each of the {len(losses)} small batches, got {list(sizes)[:8]}"
        )


def _refuse_dead_ends(gradients: Iterable[Tensor]) -> None:
    """Where a backward is marked `once_differentiable`, torch would go round it and leave its curvature out.

    Raises:
        RuntimeError: As torch says it when such a node is run.
    """
    waiting = [g.grad_fn for g in gradients]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node.name() == "torch::autograd::Error":
            raise RuntimeError("a function marked with @once_differentiable cannot be differentiated twice")
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Say what to do where an operation has no second derivative."""
    try:
        yield
    except RuntimeError as fault:
        if "not implemented" not in str(fault) and "twice" not in str(fault):
            raise
        raise EstimationError(
            f"kind 'hessian' differentiates twice, which some operation of this model refuses ({fault}): for attention "
            "use torch.nn.attention.sdpa_kernel(SDPBackend.MATH) inside the losses"
        ) from fault


@contextlib.contextmanager
def _untouched(parameters: Sequence[Tensor], buffers: Sequence[Tensor]) -> Iterator[None]:
    """Put random numbers and buffers back, whatever happens."""
    before = [buffer.detach().clone() for buffer in buffers]
    python_state = random.getstate()
    numpy_random = getattr(sys.modules.get("numpy"), "random", None)
    numpy_state = None if numpy_random is None else numpy_random.get_state()
    devices = sorted({p.device.index or 0 for p in parameters if p.is_cuda})
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        random.setstate(python_state)
        if numpy_random is not None:
            numpy_random.set_state(numpy_state)
        with torch.no_grad():
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
