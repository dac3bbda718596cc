"""Clipping by a norm that was measured anyway."""

import math
import weakref
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from noisescale.capture.watch_options import watched_parameters

MeasuredNorm = Callable[[Sequence[Tensor]], Tensor | None]

NUM_PROVING = 3
"""First times at which the measured norm is compared with torch's own, which waits for the device."""

TOLERANCE = 1e-2
"""PyTorch's own norm of many numbers on the CPU is this far off at most."""


class Clipping:
    """Clips the gradients of one optimizer; works without any measurement, too."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        self._model = weakref.ref(model)
        self._optimizer = None if optimizer is None else weakref.ref(optimizer)
        self._num_proven = 0
        self._is_refuted = False

    def clip(
        self, max_norm: float, parameters: Iterable[Tensor] | Tensor | None, measured_norm: MeasuredNorm
    ) -> Tensor:
        """Clip as `torch.nn.utils.clip_grad_norm_` does, with the norm that was measured if there is one.

        A loop may change gradients in ways that nobody can see without waiting, as a loss scaler does that `watch()`
        was not given. So the first norms are compared; where one differs, torch's own is used from then on.

        Args:
            max_norm: Largest norm afterwards.
            parameters: None: those that the optimizer holds.
            measured_norm: Gives the norm of these parameters' gradients; None where it is not known.
        """
        clipped = self._trained() if parameters is None else _listed(parameters)
        norm = None if self._is_refuted else measured_norm(clipped)
        if norm is None:
            return torch.nn.utils.clip_grad_norm_(clipped, max_norm)
        if self._num_proven < NUM_PROVING:
            return self._prove(norm, clipped, max_norm)
        torch.nn.utils.clip_grads_with_norm_(clipped, max_norm, norm)
        return norm

    def _prove(self, norm: Tensor, clipped: list[Tensor], max_norm: float) -> Tensor:
        own: Tensor = torch.nn.utils.clip_grad_norm_(clipped, max_norm)
        if math.isfinite(float(own)) and float(own) > 0:
            self._num_proven += 1
            self._is_refuted = not math.isclose(float(norm), float(own), rel_tol=TOLERANCE)
        return own

    def _trained(self) -> list[Tensor]:
        model, optimizer = self._model(), None if self._optimizer is None else self._optimizer()
        return [] if model is None else list(watched_parameters(model, optimizer).values())


def _listed(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)
