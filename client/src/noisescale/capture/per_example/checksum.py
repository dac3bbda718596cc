"""Do the layers' contributions add up to the gradient that autograd computed?

A weight that is used outside of its layer too (`functional.linear(x, embedding.weight)`, a penalty in the loss, a hook
that changes the gradient) has contributions that no layer sees; norms without them are wrong, and look right. So four
random signs ±1 for each row and column project both sides to four numbers, which differ unless the sides are equal.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from noisescale.capture.per_example.contributions import wide

# B examples, b of a slice, T positions, K channel groups, N = b K rows, O outputs, I inputs, D elements, S signs,
# P covered parameters

NUM_SIGNS = 4
"""One projection of a wrong gradient is within 1 % of the right one 0.8 % of the time; all of four never."""

NUM_PROVING_BACKWARDS = 2
"""Backward passes at the start whose checks are read at once, which waits for the device. Later ones are not waited
for: what does not add up then comes out as NaN."""

SMALL = 2**15
"""Elements from which a parameter is checked at every backward."""

CHECK_EVERY = 16
"""Smaller ones are at every 16th; one that fails there comes out as NaN until it passes again."""


class Signs:
    """The random signs of one parameter, the same at every step.

    Attributes:
        shape: [K, O, I] of a matrix, [D] of a vector.
    """

    def __init__(self, shape: tuple[int, ...], parameter: Tensor) -> None:
        self.shape = shape
        # A generator of our own: the training's random numbers stay as they are.
        generator = torch.Generator(parameter.device).manual_seed(len(shape))
        dtype = wide(parameter.dtype)

        def signs(*sizes: int) -> Tensor:
            drawn = torch.randint(0, 2, sizes, generator=generator, device=parameter.device)
            return drawn.to(dtype).mul_(2).sub_(1)

        self.row_sign_KOS = signs(*shape[:-1], NUM_SIGNS)
        self.column_sign_IS = signs(shape[-1], NUM_SIGNS)

    def project(self, gradient: Tensor) -> Tensor:
        """[S]: the gradient of the parameter, dense or sparse, in its own shape."""
        dtype = self.column_sign_IS.dtype
        if gradient.layout == torch.sparse_coo:
            row_sign_NS = self.row_sign_KOS[0][gradient._indices()[0]]
            return (gradient._values().to(dtype) @ self.column_sign_IS).mul_(row_sign_NS).sum(0)
        projected = gradient.to(dtype).reshape(self.shape) @ self.column_sign_IS
        return projected if len(self.shape) == 1 else projected.mul_(self.row_sign_KOS).sum((0, 1))


class Checksum:
    """Adds up the projections of what the layers contribute in one backward."""

    def __init__(self, signs: Signs) -> None:
        self._signs = signs
        self._sums: list[Tensor] = []
        self._sq_sums: list[Tensor] = []
        self._num_terms = 0
        self._precision = 0.0
        self._is_product = False

    def add_products(self, grad_output_NTO: Tensor, activation_NTI: Tensor) -> None:
        """Add Σ grad_output ⊗ activation over all rows and positions."""
        self._is_product = True
        row_sign_KOS = self._signs.row_sign_KOS
        column_NTS = activation_NTI @ self._signs.column_sign_IS
        grad_output = grad_output_NTO.to(row_sign_KOS.dtype)
        if len(row_sign_KOS) == 1:
            row_NTS = grad_output @ row_sign_KOS[0]
        else:
            row_NTS = (grad_output.unflatten(0, (-1, len(row_sign_KOS))) @ row_sign_KOS).flatten(0, 1)
        self._add(column_NTS * row_NTS, grad_output_NTO.dtype)

    def add_token_rows(self, token_BT: Tensor, grad_output_BTD: Tensor) -> None:
        """Add Σ of each output gradient in its token's row."""
        dtype = self._signs.column_sign_IS.dtype
        projected_BTS = grad_output_BTD.to(dtype) @ self._signs.column_sign_IS
        self._add(projected_BTS * self._signs.row_sign_KOS[0][token_BT], grad_output_BTD.dtype)

    def add_terms(self, term_BTD: Tensor, dtype: torch.dtype) -> None:
        """Add Σ of the terms over all examples and positions; `dtype` is that of the output gradient."""
        self._add(term_BTD @ self._signs.column_sign_IS, dtype)

    def add_gradients(self, gradient_b: Tensor, dtype: torch.dtype) -> None:
        """Add the gradients of b examples, [b, ...]; `dtype` is that of the output gradient."""
        signs = self._signs
        projected = gradient_b.reshape(len(gradient_b), *signs.shape) @ signs.column_sign_IS
        self._add(projected if len(signs.shape) == 1 else projected.mul_(signs.row_sign_KOS).sum((1, 2)), dtype)

    def mismatches(self, gradient: Tensor, sq_norm_B: Tensor) -> Tensor:
        """0-d bool: the gradient is not the sum of what was added, beyond rounding.

        Rounding may add to 4 ε √(b Σ |s_i|²) + ε √(N + 64) √Σ |term|² for N terms and the ε of the coarsest precision
        in play: the first is autograd's own rounding of the result, the second that of a sum which cancels. Where that
        is the precision which sums are made in, ε counts 256 and 16 times: 1.2e-4 of the result in fp32. On the CPU
        vectors and tables are added up in 16 bit where they are kept so; then the first grows like the second.

        Args:
            gradient: As autograd computed it in this backward.
            sq_norm_B: Squared norm of each example's contribution.
        """
        precision = max(self._precision, rounding(gradient.dtype, gradient.device))
        difference_S = (self._signs.project(gradient) - sum(self._sums)).double()
        difference_sq = difference_S.square().mean()
        of_sums = torch.finfo(wide(gradient.dtype)).eps
        is_added_narrowly = gradient.is_cpu and gradient.dtype.itemsize == 2 and not self._is_product
        of_result_sq = max(precision, 256 * of_sums) ** 2 * (16 + self._num_terms * is_added_narrowly)
        of_terms_sq = max(precision, 16 * of_sums) ** 2 * (64 + self._num_terms)
        result_sq = sq_norm_B.sum() * len(sq_norm_B)
        terms_sq = torch.stack(self._sq_sums).sum()
        return difference_sq > of_result_sq * result_sq + of_terms_sq * terms_sq

    def _add(self, value: Tensor, dtype: torch.dtype) -> None:
        value_NS = value.reshape(-1, NUM_SIGNS)
        self._num_terms += len(value_NS)
        self._sums.append(value_NS.sum(0))
        self._sq_sums.append(value_NS.square().sum(dtype=torch.float64) / NUM_SIGNS)
        self._precision = max(self._precision, rounding(dtype, value.device))


def rounding(dtype: torch.dtype, device: torch.device) -> float:
    """Relative rounding of matrix products in this precision, with the shortcuts that the user has allowed."""
    precision = torch.finfo(dtype).eps
    if dtype != torch.float32:
        return precision
    allowed = torch.get_float32_matmul_precision()
    if allowed == "medium":
        return torch.finfo(torch.bfloat16).eps
    # Accelerators take 10 bits of a factor where the user allows it, for convolutions even unless he forbids it.
    return torch.finfo(torch.float16).eps if device.type != "cpu" or allowed != "highest" else precision


# Which parameters are checked against autograd in which backward, and what becomes of those that fail.


class SumChecks:
    """The checks that the contributions to each parameter add up to its gradient.

    Args:
        parameters: By name.
        shapes: Of each, as its layer's rule sees it.

    Attributes:
        num_backwards: Those that were checked and settled.
    """

    def __init__(self, parameters: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.num_backwards = 0
        self._parameters = dict(parameters)
        self._shapes = shapes
        self._signs: dict[str, Signs] = {}
        self._mismatches: dict[str, Tensor] = {}
        self.clear()

    def clear(self) -> None:
        """Forget the checks of the running backward."""
        self._new_mismatches: dict[str, Tensor] = {}

    def begin(self, name: str) -> Checksum | None:
        """The sums of a parameter that is checked in this backward; of a small one most often None."""
        # the check of a small one takes as long as all else; on a GPU that of a large one, where a kernel does the rest
        parameter = self._parameters[name]
        is_checked = (
            self.num_backwards < NUM_PROVING_BACKWARDS
            or self.num_backwards % CHECK_EVERY == 0
            or (parameter.numel() >= SMALL and parameter.is_cpu)
        )
        if not is_checked:
            return None
        if name not in self._signs:
            self._signs[name] = Signs(self._shapes[name], self._parameters[name])
        return Checksum(self._signs[name])

    def end(self, name: str, checksum: Checksum, gradient: Tensor, sq_norm_b: Tensor) -> None:
        """Compare; nobody waits for the answer."""
        mismatch = checksum.mismatches(gradient, sq_norm_b)
        before = self._new_mismatches.get(name)
        self._new_mismatches[name] = mismatch if before is None else mismatch | before

    def settle(self) -> list[str]:
        """Close a backward: the parameters that failed in it, as long as the checks are read at once."""
        failed: list[str] = []
        if self.num_backwards < NUM_PROVING_BACKWARDS and self._new_mismatches:
            wrong = torch.stack([mismatch.cpu() for mismatch in self._new_mismatches.values()]).tolist()
            failed = [name for name, is_wrong in zip(self._new_mismatches, wrong, strict=True) if is_wrong]
        self.num_backwards += 1
        self._mismatches |= self._new_mismatches
        return failed

    def prove_anew(self) -> None:
        """Read the checks of the next backward passes at once again."""
        self.num_backwards = 0

    def forget(self, name: str) -> None:
        """A parameter is not measured any more."""
        self._mismatches.pop(name, None)

    def with_nan(self, sq_norm_bP: Tensor, names: Iterable[str]) -> Tensor:
        """The same squared norms, written over with NaN where the newest check of a parameter has failed."""
        if not self._mismatches:
            return sq_norm_bP
        device = sq_norm_bP.device
        matches = torch.zeros((), dtype=torch.bool, device=device)
        flags = [self._mismatches.get(name, matches).to(device, non_blocking=True) for name in names]
        return sq_norm_bP.masked_fill_(torch.stack(flags), torch.nan)
