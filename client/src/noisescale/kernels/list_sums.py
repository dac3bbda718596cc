"""Sums over lists of gradients: squares, products, and what a kind of noise scale needs, in one pass over memory."""

# P tensors, S sums: each tensor, then each group, then the total

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from noisescale.kernels import choice
from noisescale.kernels.layout import layout_of
from noisescale.kernels.memory import are_alike, are_together, contiguous_addresses, sizes_and_types
from noisescale.kernels.multi_tensor.naive import NaiveReduction, dense_values, values_that_count
from noisescale.kernels.multi_tensor.reduction import PlainReduction, Reduction
from noisescale.kernels.operations import (
    GradientSums,
    Lists,
    MetricSums,
    Numbers,
    Operation,
    PlainLists,
    SignSums,
    wide_dtype,
)
from noisescale.kernels.preference import PREFERENCE, Kernels

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
READ = frozenset(DTYPES)
"""Types that kernels read."""


class MultiTensor:
    """Sums over lists of tensors of the same sizes, call after call: per tensor, per group, and in total.

    Every list has one entry per tensor. None stands for a missing gradient, which counts as zeros. A tensor may have
    any strides, and may be sparse: then its coalesced values count, in lists that go by themselves. No call waits for
    the device, and all may be captured in a CUDA graph; before that, call each once, so that it is compiled.

    The order of summation depends on sizes, types and the device's architecture alone, so a repeated sum is equal in
    every bit.

    Args:
        numels: Elements of each tensor.
        dtypes: Type of each: float32, bfloat16, float16 or float64. A complex tensor goes in as `torch.view_as_real`.
        device: On which all tensors are.
        group_of_tensor: Index of each tensor's group; -1 for none. None: no tensor has one.
        num_groups: How many groups.
        kernels: Whose; None: what this process prefers. See `Preference`.

    Raises:
        ValueError: For lists of unequal lengths, a group or a type that there is not.
    """

    def __init__(
        self,
        numels: Sequence[int],
        dtypes: Sequence[torch.dtype],
        device: torch.device | str,
        group_of_tensor: Sequence[int] | None = None,
        num_groups: int = 0,
        kernels: Kernels | None = None,
    ) -> None:
        unknown = next((dtype for dtype in dtypes if dtype not in DTYPES), None)
        if unknown is not None:
            raise ValueError(f"dtypes must be float32, bfloat16, float16 or float64, got {unknown}")
        self._numels = tuple(numels)
        self._dtypes = tuple(dtypes)
        self._wide = tuple(wide_dtype(dtype) for dtype in dtypes)
        self._announcement = tuple(zip(dtypes, numels, strict=False))
        self._kernels = kernels
        self._device = torch.device(device)
        self._layout = layout_of(numels, dtypes, group_of_tensor, num_groups)
        self._fused: PlainReduction | None = None
        self._naive: Reduction | None = None

    @property
    def is_fused(self) -> bool:
        """Whether Triton's kernel has summed up anything so far."""
        return self._fused is not None

    @property
    def num_copies(self) -> int:
        """Tensors copied so far, because their elements are spread out in memory or are of an unexpected type."""
        return 0 if self._fused is None else self._fused.num_copies

    def sq_norms(self, tensors: Sequence[Tensor | None], inverse_scale: Tensor | None = None) -> GradientSums:
        """Σ x².

        Args:
            tensors: x.
            inverse_scale: One number on the device that each x is multiplied by before it is squared; None: 1.

        Raises:
            ValueError: For tensors that are not those announced.
        """
        sq_norm, num_nonfinite = self._sums(Operation.SQ_NORMS, tensors, inverse_scale=inverse_scale)
        return GradientSums(sq_norm, num_nonfinite, len(self._numels))

    def sq_norms_at(self, addresses: tuple[int, ...], inverse_scale: Tensor | None = None) -> GradientSums | None:
        """The same for tensors that are as announced, all there and contiguous: nothing is asked of each any more.

        Args:
            addresses: Where each begins.
            inverse_scale: See `sq_norms`.

        Returns:
            The sums; None where no kernel reads addresses.
        """
        if self._reduction(Operation.SQ_NORMS) is not self._fused or self._fused is None:
            return None
        found = self._fused.sums_at(Operation.SQ_NORMS, PlainLists(addresses, inverse_scale=inverse_scale))
        sq_norm, num_nonfinite = found.unbind()
        return GradientSums(sq_norm, num_nonfinite, len(self._numels))

    def dots(
        self, tensors: Sequence[Tensor | None], others: Sequence[Tensor | None], inverse_scale: Tensor | None = None
    ) -> GradientSums:
        """Σ x², Σ y² and Σ x y.

        Args:
            tensors: x.
            others: y, in the shapes of x, of any type.
            inverse_scale: One number on the device that each x and y is multiplied by; None: 1.

        Raises:
            ValueError: For tensors that are not those announced.
        """
        sq_norm, other_sq_norm, dot, num_nonfinite = self._sums(
            Operation.DOTS, tensors, others, inverse_scale=inverse_scale
        )
        return GradientSums(sq_norm, num_nonfinite, len(self._numels), other_sq_norm, dot)

    def preconditioned(
        self,
        tensors: Sequence[Tensor | None],
        second_moments: Sequence[Tensor | None],
        eps: float | Numbers,
        bias_correction: float | Numbers,
        inverse_scale: Tensor | None = None,
    ) -> GradientSums:
        """Σ (g / (√(v / c) + ε))², as Adam divides; coordinates with v = 0 are left out.

        Args:
            tensors: g.
            second_moments: v; where it is missing, so are all coordinates.
            eps: ε, one for all tensors or one for each.
            bias_correction: c = 1 - β₂ᵗ, one for all tensors or one for each; as a tensor, fp64 on the device.
            inverse_scale: One number on the device that each g is multiplied by; None: 1.

        Raises:
            ValueError: For tensors that are not those announced.

        Source: Kingma and Ba 2015, arXiv:1412.6980, algorithm 1.
        """
        numbers = self._for_each(eps), self._for_each(bias_correction)
        sq_norm, num_nonfinite = self._sums(
            Operation.PRECONDITIONED, tensors, second_moments, numbers=numbers, inverse_scale=inverse_scale
        )
        return GradientSums(sq_norm, num_nonfinite, len(self._numels))

    def in_metric(
        self,
        tensors: Sequence[Tensor],
        second_moments: Sequence[Tensor],
        remembered: Sequence[Tensor],
        eps: float | Numbers,
        scales: float | Numbers,
    ) -> MetricSums | None:
        """Σ g², Σ g² / d and Σ g z / d with d = s √v + ε; coordinates with v = 0 are left out of the last two.

        Args:
            tensors: g.
            second_moments: v, in the shapes of g.
            remembered: z, in the shapes of g and of the types of v.
            eps: ε, one for all tensors or one for each.
            scales: s, one for all tensors or one for each; as a tensor, fp64 on the device.

        Returns:
            The sums; None where no kernel reads these lists: Triton is not wanted or does not work, or a tensor is
            missing, sparse, not contiguous, or of another size or type than announced.
        """
        if self._reduction(Operation.METRIC) is not self._fused or self._fused is None:
            return None
        numbers = self._for_each(eps), self._for_each(scales)
        plain = self._plain(tensors, second_moments, None, numbers, None)
        third = contiguous_addresses(remembered)
        if plain is None or third is None or not are_alike(tensors, remembered):
            return None
        if not are_together([*tensors, *remembered]):  # an optimizer's state may wait on the host
            return None
        if sizes_and_types(remembered)[1] != plain.other_dtypes:
            return None
        found = self._fused.sums_at(Operation.METRIC, replace(plain, third=third))
        sq_norm, own, product, num_nonfinite = found.unbind()
        return MetricSums(sq_norm, own, product, num_nonfinite, len(self._numels))

    def sign_statistics(
        self, tensors: Sequence[Tensor | None], others: Sequence[Tensor | None], factors: tuple[float, float] = (1, 1)
    ) -> SignSums:
        """Σ |a - b|, Σ (|a| + |b|) / 2 and Σ (sign(a) b + sign(b) a) / 2.

        Args:
            tensors: a, before it is multiplied by its factor.
            others: b, before it is multiplied by its factor.
            factors: Of a and b: one over their shares of the examples makes means of sums.

        Raises:
            ValueError: For tensors that are not those announced.
        """
        numbers = self._for_each(float(factors[0])), self._for_each(float(factors[1]))
        distance, upper, lower, num_nonfinite = self._sums(Operation.SIGNS, tensors, others, numbers=numbers)
        return SignSums(distance, upper, lower, num_nonfinite, len(self._numels))

    def accumulate(
        self,
        main: Sequence[Tensor | None],
        gradients: Sequence[Tensor | None],
        inverse_scale: Tensor | None = None,
    ) -> GradientSums:
        """Add gradients to sums in 32 bit, in place; then Σ g² of the gradients and Σ y² of the new sums.

        The second is `other_sq_norm`.

        Args:
            main: The sums, fp32 (fp64 for gradients in fp64), contiguous; one must be there where a gradient is.
            gradients: Of the announced types.
            inverse_scale: One number on the device that g and y are multiplied by in Σ g² and Σ y², not in what is
                added; None: 1.

        Raises:
            ValueError: For tensors that are not those announced, and for sums that cannot be added to in place.
        """
        sq_norm, other_sq_norm, num_nonfinite = self._sums(
            Operation.ACCUMULATE, gradients, main, other_dtypes=self._wide, inverse_scale=inverse_scale
        )
        return GradientSums(sq_norm, num_nonfinite, len(self._numels), other_sq_norm)

    def _sums(
        self,
        operation: Operation,
        tensors: Sequence[Tensor | None],
        others: Sequence[Tensor | None] = (),
        *,
        other_dtypes: tuple[torch.dtype, ...] | None = None,
        numbers: tuple[Numbers, Numbers] | None = None,
        inverse_scale: Tensor | None = None,
    ) -> tuple[Tensor, ...]:
        reduction = self._reduction(operation)
        if reduction is self._fused and self._fused is not None:
            plain = self._plain(tensors, others, other_dtypes, numbers, inverse_scale)
            if plain is not None:
                return self._fused.sums_at(operation, plain).unbind()
        if not operation.has_other:
            return reduction.sums(
                operation, Lists(self._checked(tensors, self._dtypes), inverse_scale=inverse_scale)
            ).unbind()
        xs, ys = self._pair(tensors, others, other_dtypes)
        if operation is Operation.ACCUMULATE:
            _check_sums(xs, ys)
        return reduction.sums(operation, Lists(xs, ys, numbers, inverse_scale)).unbind()

    def _plain(
        self,
        tensors: Sequence[Tensor | None],
        others: Sequence[Tensor | None],
        other_dtypes: tuple[torch.dtype, ...] | None,
        numbers: tuple[Numbers, Numbers] | None,
        inverse_scale: Tensor | None,
    ) -> PlainLists | None:
        """Where the tensors begin; None where each has to be looked at."""
        first = contiguous_addresses(tensors)
        if first is None or sizes_and_types(tensors) != (self._numels, self._dtypes):  # type: ignore[arg-type]
            return None
        if not others:
            return PlainLists(first, inverse_scale=inverse_scale)
        other = contiguous_addresses(others)
        if other is None or not are_alike(tensors, others):  # type: ignore[arg-type]
            return None
        if not are_together([*tensors, *others]):  # type: ignore[list-item]
            return None
        found = sizes_and_types(others)[1]  # type: ignore[arg-type]
        is_known = READ.issuperset(found) if other_dtypes is None else found == other_dtypes
        if not is_known or any(len({found[i] for i in launch.indices}) > 1 for launch in self._layout.launches):
            return None
        return PlainLists(first, other, found, numbers, inverse_scale)

    def _reduction(self, operation: Operation) -> Reduction:
        if choice.takes_triton(self._kernels or PREFERENCE.kernels, self._device, operation):
            if self._fused is None and not choice.is_capturing(
                self._device
            ):  # a graph must not copy tables that are new
                self._fused = choice.fused(self._layout, self._device)
            if self._fused is not None:
                return self._fused
        self._naive = self._naive or NaiveReduction(self._layout, self._device)
        return self._naive

    def _for_each(self, numbers: float | Numbers) -> Numbers:
        if isinstance(numbers, Tensor):
            return numbers.expand(len(self._numels))
        return [float(numbers)] * len(self._numels) if isinstance(numbers, int | float) else numbers

    def _checked(
        self, tensors: Sequence[Tensor | None], dtypes: Sequence[torch.dtype] | None = None
    ) -> list[Tensor | None]:
        """The values of one list that goes by itself."""
        values = [
            tensor
            if tensor is None or (tensor.layout is torch.strided and not tensor.requires_grad)
            else values_that_count(tensor)
            for tensor in tensors
        ]
        return self._announced(values, dtypes)

    def _pair(
        self,
        tensors: Sequence[Tensor | None],
        others: Sequence[Tensor | None],
        other_dtypes: Sequence[torch.dtype] | None = None,
    ) -> tuple[list[Tensor | None], list[Tensor | None]]:
        """The values of two lists that go element by element."""
        xs = self._announced([None if tensor is None else dense_values(tensor) for tensor in tensors], self._dtypes)
        ys = self._announced([None if tensor is None else dense_values(tensor) for tensor in others], other_dtypes)
        for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
            if x is not None and y is not None and x.shape != y.shape:
                raise ValueError(
                    f"others must be shaped like tensors, got {tuple(y.shape)} for {tuple(x.shape)} at {index}"
                )
        return xs, ys

    def _announced(self, tensors: list[Tensor | None], dtypes: Sequence[torch.dtype] | None) -> list[Tensor | None]:
        if len(tensors) != len(self._numels):
            raise ValueError(f"a list must have {len(self._numels)} tensors or None, got {len(tensors)}")
        found = tuple([(tensor.dtype, tensor.numel()) for tensor in tensors if tensor is not None])
        if found == self._announcement and (dtypes is None or dtypes is self._dtypes):
            return tensors
        for index, tensor in enumerate(tensors):
            if tensor is None:
                continue
            if tensor.numel() > self._numels[index]:
                raise ValueError(f"tensor {index} must have {self._numels[index]} elements, got {tensor.numel()}")
            wanted = DTYPES if dtypes is None else (dtypes[index],)
            if tensor.dtype not in wanted:
                names = " or ".join(str(dtype) for dtype in wanted)
                raise ValueError(f"tensor {index} must be of {names}, got {tensor.dtype}")
        return tensors


def _check_sums(gradients: Sequence[Tensor | None], sums: Sequence[Tensor | None]) -> None:
    """Whether gradients can be added to these sums in place.

    Raises:
        ValueError: They cannot.
    """
    for index, (gradient, total) in enumerate(zip(gradients, sums, strict=True)):
        if gradient is not None and (total is None or not total.is_contiguous()):
            raise ValueError(f"main must hold a contiguous tensor where there is a gradient, not so at {index}")
