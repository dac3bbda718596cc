"""How a model is to be watched, and what cannot be."""

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from noisescale.capture.parameter_groups import Grouping
from noisescale.capture.sums.step_norms import Weighting
from noisescale_core.errors import ConfigError

LossReduction = Literal["mean_over_examples", "mean_over_tokens", "sum"]

SmallBatches = Literal["auto", "micro_batches", "ranks", "per_example", "layer_norm_proxy"]

Kind = Literal["adam", "sign", "spectral"]

Accumulate = Literal["autograd", "fp32"]


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What `Run.watch()` was asked for; each field is explained there."""

    loss_reduction: LossReduction = "mean_over_examples"
    groups: Grouping = "layer"
    every: int = 1
    overhead: float | None = None
    small_batches: SmallBatches = "auto"
    split: int | None = None
    scaler: Any = None
    weighting: Weighting = "by_size"
    kinds: Sequence[Kind] = ()
    fused_norm_layers: bool = False
    accumulate: Accumulate = "autograd"
    judge_rate: bool = True

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            ConfigError: It names the argument, the value and the way out.
        """
        _check_choice("loss_reduction", self.loss_reduction, get_args(LossReduction))
        _check_choice("small_batches", self.small_batches, get_args(SmallBatches))
        _check_choice("weighting", self.weighting, get_args(Weighting))
        _check_choice("accumulate", self.accumulate, get_args(Accumulate))
        if not isinstance(self.judge_rate, bool):
            raise ConfigError(f"judge_rate must be True or False, got {self.judge_rate!r}")
        for kind in self.kinds:
            _check_choice("kinds", kind, get_args(Kind))
        if not isinstance(self.every, int) or isinstance(self.every, bool) or self.every < 1:
            raise ConfigError(f"every must be a whole number of steps from 1, got {self.every!r}")
        if self.overhead is not None and not (
            isinstance(self.overhead, int | float) and math.isfinite(self.overhead) and 0 < self.overhead <= 1
        ):
            raise ConfigError(f"overhead must be a share above 0 and up to 1, such as 0.01, got {self.overhead!r}")
        if self.overhead is not None and self.every != 1:
            raise ConfigError("every and overhead both say how often to measure: give one of them")
        if self.kinds and (self.split is not None or self.small_batches not in ("auto", "micro_batches")):
            raise ConfigError(
                f"kinds={list(self.kinds)} need backward passes as small batches: leave split and "
                f"small_batches={self.small_batches!r} out"
            )
        if self.accumulate == "fp32" and (
            self.split is not None or self.small_batches not in ("auto", "micro_batches")
        ):
            raise ConfigError(
                "accumulate='fp32' measures backward passes as it adds them up: leave split and "
                f"small_batches={self.small_batches!r} out"
            )
        if self.split is not None and (
            not isinstance(self.split, int) or isinstance(self.split, bool) or self.split < 2
        ):
            raise ConfigError(f"split must be a whole number of small batches from 2, got {self.split!r}")
        if self.split is not None and self.small_batches != "auto":
            raise ConfigError(f"split and small_batches={self.small_batches!r} exclude each other: give one of them")
        if self.fused_norm_layers and self.small_batches not in ("per_example", "layer_norm_proxy"):
            raise ConfigError(
                f"fused_norm_layers needs per-example norms, got small_batches={self.small_batches!r}: "
                'small_batches="layer_norm_proxy" or "per_example"'
            )
        if self.scaler is not None and not isinstance(self.scaler, torch.amp.GradScaler):
            raise ConfigError(f"scaler must be a torch.amp.GradScaler, got {type(self.scaler).__name__}")

    def check_job(self, job: str) -> None:
        """Refuse what is for one process only.

        Args:
            job: Name of the data-parallel job that the model belongs to.

        Raises:
            ConfigError: It names the argument and the way out.
        """
        if self.kinds:
            raise ConfigError(f"kinds={list(self.kinds)} are measured in one process only so far: leave them out")
        if self.accumulate == "fp32":
            raise ConfigError(
                f"accumulate='fp32' is for one process, and {job.upper()} owns the gradients: leave it out"
            )
        if self.split is not None:
            raise ConfigError("split is for one process: in a data-parallel job the ranks are small batches already")


def _check_choice(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def watched_parameters(model: Any, optimizer: Any) -> dict[str, Tensor]:
    """The trainable parameters that the optimizer holds, by name; tied ones once.

    Others would keep the gradients of earlier steps: `optimizer.zero_grad()` does not clear them.

    Raises:
        ConfigError: For what cannot be watched.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"watch() needs a torch.nn.Module, got {type(model).__name__}: pass the model itself")
    if optimizer is not None:
        _check_optimizer(optimizer)
    parameters: dict[str, Tensor] = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ConfigError("the model has no parameter that requires a gradient: watch() it before freezing")
    if optimizer is None:
        return parameters
    optimized = {id(p) for group in optimizer.param_groups for p in group["params"]}
    held = {name: p for name, p in parameters.items() if id(p) in optimized}
    if not held:
        raise ConfigError(
            f"the {type(optimizer).__name__} holds none of the model's parameters that require a gradient: "
            "make it from this model, or leave it out for one that keeps copies"
        )
    return held


def _check_optimizer(optimizer: Any) -> None:
    name = type(optimizer).__name__
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ConfigError(f"watch() needs a torch.optim.Optimizer, got {name}: leave it out for one of another kind")
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise ConfigError(
            f"{name} runs backward repeatedly inside step(), so a step has no one gradient: not supported"
        )


# Layers that make an example's gradient depend on the others of its batch.


class CoupledExamples:
    """The BatchNorm layers of a model.

    Attributes:
        notes: What everyone should know who reads the model's noise scale.
    """

    def __init__(self, model: nn.Module) -> None:
        named = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        self._layers = [module for _, module in named]
        self.notes: list[str] = []
        if named:
            more = f" and {len(named) - 1} more" if len(named) > 1 else ""
            self.notes.append(
                f"BatchNorm ({named[0][0]}{more}) couples the examples of a micro-batch: the noise scale depends on "
                "the micro-batch's size"
            )

    @property
    def are_there(self) -> bool:
        """Whether the model has such layers."""
        return bool(self._layers)

    @property
    def are_coupled(self) -> bool:
        """Whether one of them works on the statistics of the batch now."""
        return any(layer.training for layer in self._layers)
