"""Watches one model and its optimizer, and hands out the squared norms of each step."""

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor, nn

from noisescale.capture.accumulation import Accumulation
from noisescale.capture.device_values import DeviceValues
from noisescale.capture.distributed import world_size
from noisescale.capture.hooks import Hooks
from noisescale.capture.parameter_groups import Grouping, group_parameters
from noisescale.capture.step_norms import StepNorms, StepSizes
from noisescale.errors import ConfigError

LossReduction = Literal["mean_over_examples", "mean_over_tokens", "sum"]

LOSS_REDUCTIONS = ("mean_over_examples", "mean_over_tokens", "sum")

Tag = TypeVar("Tag")

logger = logging.getLogger("noisescale")


@dataclass(frozen=True, slots=True)
class _Sent(Generic[Tag]):
    """A step whose values are on their way to the host."""

    tag: Tag
    sizes: StepSizes
    host_loss: float | None
    num_norms: int


class Watch(Generic[Tag]):
    """The steps of one optimizer, from hooks to squared norms.

    Attributes:
        group_names: Layers in network order.
        num_steps: Optimizer steps that are over; the current step has this number.
        optimizer_name: Class of the optimizer; None without one.
        device_name: Where the parameters are, as people call it.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None,
        *,
        loss_reduction: LossReduction,
        groups: Grouping,
        on_fault: Callable[[Exception], None],
    ) -> None:
        parameters = _check_arguments(model, optimizer, loss_reduction)
        self.group_names, group_of_parameter = group_parameters(list(parameters), groups)
        self.num_steps = 0
        self.optimizer_name = None if optimizer is None else type(optimizer).__name__
        self.loss_reduction = loss_reduction
        self.device_name = device_name(next(iter(parameters.values())).device)
        self._optimizer = optimizer
        self._accumulation = Accumulation(list(parameters.values()), group_of_parameter, len(self.group_names))
        self._hooks = Hooks(
            model, list(parameters.values()), optimizer, self._accumulation, on_step=self._on_step, on_fault=on_fault
        )
        self._values: DeviceValues[_Sent[Tag]] = DeviceValues()

    def close(self) -> None:
        """Take the hooks off; steps already logged can still be drained."""
        self._hooks.remove()

    def learning_rate(self) -> float | None:
        """Of the optimizer's first parameter group; None where reading it would wait for the device."""
        if self._optimizer is None:
            return None
        lr = self._optimizer.param_groups[0].get("lr")
        if isinstance(lr, Tensor):
            return float(lr) if lr.device.type == "cpu" else None
        return None if lr is None else float(lr)

    def has_logged_this_step(self) -> bool:
        """Whether this step was logged before, with neither an optimizer step nor cleared gradients since."""
        return self._accumulation.has_been_logged

    def sizes(self, batch_size: float | None) -> StepSizes:
        """How the examples of the step so far are spread.

        Args:
            batch_size: Examples of the step; None: read from the model's input.
        """
        self._hooks.settle()
        return self._accumulation.sizes(batch_size)

    def log_step(self, tag: Tag, sizes: StepSizes, *, loss: Tensor | float | None) -> None:
        """Close the step: its norms start their way to the host under this tag.

        Args:
            tag: Comes back with the norms.
            sizes: From `sizes()`.
            loss: One number, anywhere.
        """
        values: list[Tensor] = []
        num_norms = 0
        if sizes.num_small_batches >= 2 and sizes.batch_size is not None and sizes.adds_up:
            norms = self._accumulation.norms(sizes, is_summed_loss=self.loss_reduction == "sum").flatten()
            num_norms = norms.numel()
            values.append(norms)
        host_loss = None
        if isinstance(loss, Tensor) and not loss.is_cpu:
            values.append(loss.detach().double().reshape(1))
        elif loss is not None:
            # detach first: a number out of a tensor that requires a gradient warns.
            host_loss = float(loss.detach() if isinstance(loss, Tensor) else loss)
        sent = _Sent(tag, sizes, host_loss, num_norms)
        self._values.send(sent, torch.cat(values) if len(values) > 1 else values[0] if values else torch.empty(0))
        self._accumulation.has_been_logged = True
        if self._optimizer is None:
            self._on_step()

    def arrived(self) -> list[tuple[Tag, StepNorms]]:
        """Logged steps whose values have reached the host, oldest first; never waits."""
        return [_step_norms(sent, values) for sent, values in self._values.arrived()]

    def drain(self) -> list[tuple[Tag, StepNorms]]:
        """All logged steps; waits for the device."""
        return [_step_norms(sent, values) for sent, values in self._values.drain()]

    def begin_micro_batch(self) -> None:
        """Several backward passes from here on are one small batch."""
        self._hooks.settle()
        self._accumulation.is_marked = True

    def end_micro_batch(self, num_examples: float | None) -> None:
        """Close the marked small batch; nothing where its beginning was refused."""
        if self._accumulation.is_marked:
            self._accumulation.is_marked = False
            self._accumulation.end_small_batch(num_examples)

    def ignore(self, is_ignoring: bool) -> None:
        """Leave backward passes out from here on, or no longer."""
        self._hooks.settle()
        self._accumulation.is_ignoring = is_ignoring

    def _on_step(self) -> None:
        self.num_steps += 1
        self._accumulation.start_step()
        self._accumulation.clear_forwards()


def _step_norms(sent: _Sent[Tag], values: Sequence[float]) -> tuple[Tag, StepNorms]:
    half = sent.num_norms // 2
    loss = values[sent.num_norms] if len(values) > sent.num_norms else sent.host_loss
    return sent.tag, StepNorms(sent.sizes, values[:half], values[half : sent.num_norms], loss)


def device_name(device: torch.device) -> str:
    """What people call a device: "NVIDIA H200", or its type."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _check_arguments(model: Any, optimizer: Any, loss_reduction: Any) -> dict[str, Tensor]:
    """The trainable parameters that the optimizer holds, by name; tied ones once.

    Others would keep the gradients of earlier steps: `optimizer.zero_grad()` does not clear them.

    Raises:
        ConfigError: For arguments that cannot be watched.
    """
    if not isinstance(model, nn.Module):
        raise ConfigError(f"watch() needs a torch.nn.Module, got {type(model).__name__}: pass the model itself")
    if loss_reduction not in LOSS_REDUCTIONS:
        raise ConfigError(f"loss_reduction must be one of {', '.join(LOSS_REDUCTIONS)}, got {loss_reduction!r}")
    if optimizer is not None:
        _check_optimizer(optimizer)
    if world_size() > 1:
        raise ConfigError(
            f"watch() measures one process so far, this job has {world_size()}: "
            "hand the norms of your ranks to log_norms()"
        )
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
