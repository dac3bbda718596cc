"""Kind `adam`: B_simple of gradients divided by Adam's √v̂ + ε."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from noisescale.capture.kinds.preconditioner import divided_sq_norm, divisor_of, is_root, unwrapped
from noisescale.kernels import PREFERENCE
from noisescale.kernels.choice import takes_triton
from noisescale.kernels.operations import Operation
from noisescale.kernels.squared_norms import squared_norms
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.noise_scale import Terms, from_unequal_groups

MIN_STEPS = 5
"""Optimizer steps from which v̂ is used: earlier it rests on almost nothing."""


class AdamKind:
    """Squared norms of g / (√v̂ + ε), v̂ from past steps alone.

    Given the past, the divisor is a constant, so both terms are as unbiased as those of kind `simple`. The v̂ that
    Adam itself divides by holds this step's gradient too; with that one numerator and denominator would depend on the
    noise twice. Without it, a coordinate whose gradient is rarely other than zero counts more than in Adam's update.

    Source: Qiao et al. 2021 (Pollux, OSDI), whose code (adaptdl) divides likewise after 5 steps.
    """

    name: ClassVar[str] = "adam"
    is_biased: ClassVar[bool] = False

    def __init__(self, parameters: Sequence[Tensor], optimizer: torch.optim.Optimizer) -> None:
        """Measures the parameters that the optimizer updates; others are left out.

        Args:
            parameters: All on which small batches are reported, in the order of their indices.
            optimizer: Adam, AdamW, NAdam, RAdam or Adamax of `torch.optim`, or a wrapper of one.

        Raises:
            ConfigError: For another optimizer, or one that updates none of the parameters.
        """
        self._parameters = list(parameters)
        self._optimizer = unwrapped(optimizer)
        self._divisor = divisor_of(self._optimizer)
        group_of = {id(p): number for number, group in enumerate(self._optimizer.param_groups) for p in group["params"]}
        self._group_of = [group_of.get(id(p)) for p in self._parameters]
        if all(number is None for number in self._group_of):
            raise ConfigError(
                f"{type(self._optimizer).__name__} updates none of the {len(self._parameters)} watched parameters, so "
                "its state says nothing about them (copies in 32 bit?): leave kind 'adam' out"
            )
        self.clear()

    def clear(self) -> None:
        """Forget the step: a new one begins."""
        self._is_complete = True
        self._weighted: Tensor | None = None
        self._small: Tensor | None = None
        self._num_examples = 0.0
        self._late_steps: dict[int, Tensor] = {}

    def is_ready(self) -> bool:
        """Whether some parameter has had 5 steps, or a count of steps that only the device knows."""
        return any(_has_enough_steps(state) for _, state in self._states())

    def add(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> None:
        """Take parts of one small batch; see `Kind`."""
        sq_norm = self._sq_norm(indices, gradients)
        if sq_norm is not None:
            self._small = sq_norm if self._small is None else self._small + sq_norm

    def end_small_batch(self, size: float) -> None:
        """Close the small batch of n_k examples."""
        small, self._small = self._small, None
        if not size > 0:
            return
        self._num_examples += size
        if small is not None:
            self._weighted = small / size if self._weighted is None else self._weighted + small / size

    def values(self, *, scale: float) -> Tensor:
        """[W, |ḡ|², fewest steps of the optimizer], both norms after division by √v̂ + ε."""
        indices = [index for index, p in enumerate(self._parameters) if p.grad is not None]
        gradients = [g for p in self._parameters if (g := p.grad) is not None]
        big = self._sq_norm(indices, gradients)
        if big is None or self._weighted is None or not self._is_complete:
            return torch.zeros(3, dtype=torch.float64, device=self._parameters[0].device)
        steps = torch.full_like(big, MIN_STEPS)
        if self._late_steps:
            late = [step.double().reshape(()).to(big.device) for step in self._late_steps.values()]
            steps = torch.stack([steps, *late]).amin()
        return torch.stack([self._weighted * (self._num_examples / scale**2), big / scale**2, steps])

    def terms(
        self, values: Sequence[float], *, num_small_batches: int, batch_size: float, scale: float = 1.0
    ) -> Terms | None:
        """Unbiased tr(D⁻¹ Σ D⁻¹) and |D⁻¹ G|², D = diag(√v̂ + ε); None in the first 5 steps of a parameter.

        Source: `from_unequal_groups`, on the divided gradients.
        """
        weighted, big, steps = values
        if steps < MIN_STEPS or num_small_batches < 2:
            return None
        return from_unequal_groups(
            weighted_sq_norm=weighted / scale**2,
            big_sq_norm=big / scale**2,
            num_groups=num_small_batches,
            batch_size=batch_size,
        )

    def bracket(self) -> Bracket | None:
        """Its terms are unbiased, so there are no bounds to know."""
        return None

    def _states(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        for index, number in enumerate(self._group_of):
            # get, not []: the optimizer takes an empty state for one that exists
            if number is not None and (state := self._optimizer.state.get(self._parameters[index])):
                yield index, state

    def _sq_norm(self, indices: Sequence[int], gradients: Sequence[Tensor]) -> Tensor | None:
        """Σ |s / (√v̂ + ε)|² over these parameters, on the device of the first of all."""
        known, coordinates = [], []
        for index, gradient in zip(indices, gradients, strict=True):
            number = self._group_of[index]
            if number is None:
                continue
            state = self._optimizer.state.get(self._parameters[index])
            if not state or not _has_enough_steps(state):
                self._is_complete = False
                return None
            if not _is_on_host(state["step"]):
                self._late_steps[id(state["step"])] = state["step"]
            known.append((state, self._optimizer.param_groups[number]))
            coordinates.append(torch.view_as_real(gradient.detach()) if gradient.is_complex() else gradient.detach())
        if not known:
            return None
        device = self._parameters[0].device
        if self._takes_one_pass(coordinates):
            return divided_sq_norm(self._optimizer, coordinates, known)
        divided = [g / self._divisor(*of_state) for g, of_state in zip(coordinates, known, strict=True)]
        return squared_norms(divided).sum().to(device, non_blocking=True)

    def _takes_one_pass(self, coordinates: Sequence[Tensor]) -> bool:
        """Whether a kernel of ours divides while it adds up."""
        device = self._parameters[0].device
        return (
            is_root(self._optimizer)
            and all(g.device == device and g.layout == torch.strided for g in coordinates)
            and takes_triton(PREFERENCE.kernels, device, Operation.PRECONDITIONED)
        )


def _has_enough_steps(state: Mapping[str, Any]) -> bool:
    step = state.get("step")
    return step is not None and (not _is_on_host(step) or float(step) >= MIN_STEPS)


def _is_on_host(step: object) -> bool:
    return not isinstance(step, Tensor) or step.is_cpu
