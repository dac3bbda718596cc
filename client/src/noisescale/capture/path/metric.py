"""Squared norms and products of gradients in the metric of an optimizer's step, without waiting.

Where a kernel of ours reads gradients, second moments and averages, all is one pass over them. Elsewhere a batch of
pieces on the CPU stays in a processor's cache; on a device a batch is large, and launches are few. The divisor is
computed anew for each pass: to keep it would take the memory of a copy of the parameters, and on the CPU as much time.
"""

# N pieces of a batch

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from noisescale.capture.path.affine_updates import Affine, Number
from noisescale.capture.sums.row_sums import list_like
from noisescale.kernels.choice import takes_triton
from noisescale.kernels.list_sums import READ
from noisescale.kernels.operations import MetricSums, Numbers, Operation
from noisescale.kernels.preference import PREFERENCE

ON_CPU, ON_DEVICE = 1 << 17, 1 << 24
"""Elements of a batch."""


class Part(NamedTuple):
    """What one parameter adds.

    Attributes:
        gradient: Of it; it has elements.
        affine: How it is updated.
        rate: Learning rate of its group, over that of the first.
    """

    gradient: Tensor
    affine: Affine
    rate: float

    @property
    def factor(self) -> Number:
        """Of its square in the metric, besides 1 ÷ divisor."""
        return _product(self.affine.weight, self.rate)


class _Piece(NamedTuple):
    part: Part
    first: int
    gradient: Tensor

    def of(self, tensor: Tensor) -> Tensor:
        """The same elements of another tensor of the parameter's shape."""
        values = flat(tensor)[self.first : self.first + self.gradient.numel()]
        return values if values.dtype == self.gradient.dtype else values.to(self.gradient.dtype)


@torch.no_grad()
def sq_norm(parts: Sequence[Part]) -> Tensor:
    """The squared norm of gradients in the metric: Σ rate · weight · g² ÷ divisor, fp64 without dimensions."""
    sums = _in_one_pass(parts, has_past=False)
    if sums is not None:
        return _weighed(sums.own, [part.factor for part in parts])
    room = _room(parts)
    return torch.stack([_own(batch, _divided(batch, room)) for batch in _batches(parts)]).sum()


@torch.no_grad()
def look_at(parts: Sequence[Part]) -> Tensor:
    """[Σ g², the squared norm in the metric, Σ rate · past · g ÷ divisor] of gradients, fp64."""
    sums = _in_one_pass(parts, has_past=True)
    if sums is not None:
        own = _weighed(sums.own, [part.factor for part in parts])
        past = _weighed(sums.product, [_product(part.affine.past[0][0], part.rate) for part in parts])
        return torch.stack([sums.sq_norm[-1], own, past])
    found: list[Tensor] = []
    room = _room(parts)
    for batch in _batches(parts):
        divided = _divided(batch, room)
        gradients = [piece.gradient for piece in batch]
        plain = torch.stack([torch.dot(one, one) for one in gradients]).double().sum()
        found.append(torch.stack([plain, _own(batch, divided), _past(batch, divided, plain)]))
    return torch.stack(found).sum(0)


def _in_one_pass(parts: Sequence[Part], *, has_past: bool) -> MetricSums | None:
    """The sums of each by one kernel; None where it does not read these.

    Args:
        parts: All of them.
        has_past: The products with the past are asked for, too.
    """
    roots = [root for part in parts if (root := part.affine.root) is not None]
    device = parts[0].gradient.device
    if len(roots) < len(parts) or not takes_triton(PREFERENCE.kernels, device, Operation.METRIC):
        return None
    gradients = [part.gradient for part in parts]
    if not READ.issuperset(gradient.dtype for gradient in gradients) or len({g.device for g in gradients}) > 1:
        return None
    if has_past and any(len(part.affine.past) != 1 for part in parts):
        return None
    moments = [root.second_moment for root in roots]
    remembered = [part.affine.past[0][1] for part in parts] if has_past else moments
    on_device = [root.scale for root in roots if isinstance(root.scale, Tensor)]
    on_host = [root.scale for root in roots if not isinstance(root.scale, Tensor)]
    if on_device and on_host:
        return None
    scales: Numbers = torch.stack(on_device) if on_device else on_host
    return list_like(gradients).in_metric(gradients, moments, remembered, [root.eps for root in roots], scales)


def _weighed(sum_S: Tensor, factors: Sequence[Number]) -> Tensor:
    """Σ factor · sum over the tensors; without dimensions.

    Args:
        sum_S: Of each tensor, and behind them others.
        factors: One for each tensor, all on the host or all on the device.
    """
    if isinstance(factors[0], Tensor):
        return sum_S[: len(factors)] @ torch.stack(list(factors))  # type: ignore[arg-type]
    if len(set(factors)) == 1:
        return sum_S[-1] * factors[0]
    return torch.stack(_times(sum_S[: len(factors)].unbind(), factors)).sum()


def _product(number: Number, rate: float) -> Number:
    """Their product; most often rates are alike, and one launch a parameter is spared."""
    return number if rate == 1.0 else number * rate


def _own(batch: Sequence[_Piece], divided: Sequence[Tensor]) -> Tensor:
    dots = [torch.dot(piece.gradient, other) for piece, other in zip(batch, divided, strict=True)]
    return torch.stack(_times([dot.double() for dot in dots], [piece.part.factor for piece in batch])).sum()


def _past(batch: Sequence[_Piece], divided: Sequence[Tensor], like: Tensor) -> Tensor:
    products = [
        torch.dot(piece.of(remembered), other).double() * (factor * piece.part.rate)
        for piece, other in zip(batch, divided, strict=True)
        for factor, remembered in piece.part.affine.past
    ]
    return torch.stack(products).sum() if products else torch.zeros_like(like)


def _room(parts: Sequence[Part]) -> Tensor | None:
    """Memory for a batch on the CPU: memory of its own for each would take longer than what is computed."""
    is_plain = all(part.gradient.is_cpu and part.gradient.dtype != torch.float64 for part in parts)
    return torch.empty(2, ON_CPU) if is_plain else None


def _divided(batch: Sequence[_Piece], room: Tensor | None) -> list[Tensor]:
    """Gradients ÷ divisor; where v = 0, as a coordinate has never had a gradient, 0.

    Args:
        batch: Pieces.
        room: Is written to, and so holds the last batch alone.
    """
    if room is not None:
        return _divided_in(room, batch)
    gradients = [piece.gradient for piece in batch]
    known = [(piece, root) for piece in batch if (root := piece.part.affine.root) is not None]
    if not known:
        return gradients
    moments = [piece.of(root.second_moment) for piece, root in known]
    divisors = _times(torch._foreach_sqrt(moments), [root.scale for _, root in known])
    torch._foreach_add_(divisors, [root.eps for _, root in known])
    signs = torch._foreach_sign(moments)
    torch._foreach_div_(signs, divisors)
    torch._foreach_mul_(signs, gradients)
    return list(signs)


def _divided_in(room: Tensor, batch: Sequence[_Piece]) -> list[Tensor]:
    found: list[Tensor] = []
    first = 0
    for piece in batch:
        root, end = piece.part.affine.root, first + piece.gradient.numel()
        if root is None:
            found.append(piece.gradient)
            continue
        moment, divisor, quotient = piece.of(root.second_moment), room[0, first:end], room[1, first:end]
        torch.sqrt(moment, out=divisor).mul_(root.scale).add_(root.eps)
        found.append(torch.sign(moment, out=quotient).mul_(piece.gradient).div_(divisor))
        first = end
    return found


def _times(tensors: Sequence[Tensor], factors: Sequence[Number]) -> list[Tensor]:
    numbers = [factor for factor in factors if not isinstance(factor, Tensor)]
    if len(numbers) == len(factors):
        return list(torch._foreach_mul(list(tensors), numbers))
    return [tensor * factor for tensor, factor in zip(tensors, factors, strict=True)]


def _batches(parts: Sequence[Part]) -> Iterator[list[_Piece]]:
    size = ON_CPU if parts[0].gradient.is_cpu else ON_DEVICE
    waiting: list[_Piece] = []
    num_waiting = 0
    for part in parts:
        first = 0
        for piece in flat(part.gradient).split(size):
            if waiting and num_waiting + len(piece) > size:
                yield waiting
                waiting, num_waiting = [], 0
            waiting.append(_Piece(part, first, piece))
            first, num_waiting = first + len(piece), num_waiting + len(piece)
    yield waiting


def flat(tensor: Tensor) -> Tensor:
    """Its elements as a vector in fp32 at least; of complex ones real and imaginary parts."""
    values = tensor.detach()
    values = values if values.layout == torch.strided else values.to_dense()
    real = torch.view_as_real(values) if values.is_complex() else values
    vector = real.reshape(-1)
    return vector.float() if vector.dtype in (torch.float16, torch.bfloat16) else vector
