"""Cuts each forward of a model into parts, so that one backward gives the gradient of each part by itself.

Every part sees the parameters through views of its own, and a hook on such a view sees what the part adds to the
gradient. The loop computes its loss on the whole output, so the gradient stays what it was but for rounding.
"""

# P parameters, K parts

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from noisescale.capture.sources.batch_parts import NotSeparableError, cut, join, part_sizes, tensors_in
from noisescale.capture.sums.pending_gradients import PendingGradients
from noisescale.capture.sums.small_batches import SmallBatchSize
from noisescale.guard import logger
from noisescale.kernels.squared_norms import SMALL, values_that_count

NO_BACKWARD = -1
"""What torch calls the backward that runs while none does."""

MISMATCH = 1e-3
"""Share by which the parts of a gradient, or of an output, may differ from the whole through rounding; in 16 bit 30
times as much."""


class Split:
    """Runs the forward of the watched model in parts; see `GradientSource`.

    What is not done in parts is said once in the log: inputs and outputs without the batch first, and models whose
    parts together give another output than the whole.

    Args:
        model: Its input has the examples in the first dimension.
        parameters: Trainable ones by name.
        num_parts: K.
        on_fault: Told about our own faults inside hooks.

    Attributes:
        message: What is changed by it, in words.
        is_refused: The model turned out not to be separable; it runs as without.
        plain: The model's own forward.
        dropped: No parameter ever is.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, Tensor],
        num_parts: int,
        *,
        on_fault: Callable[[Exception], None],
    ) -> None:
        self.dropped: list[int] = []
        self.message: str | None = (
            f"each forward runs in {num_parts} parts: random numbers such as dropout's come in another order"
        )
        self._model = model
        self._parameters = dict(parameters)
        self._num_parts = num_parts
        self._on_fault = on_fault
        self._own_forward = model.__dict__.get("forward")
        self.plain = _Plain(model)
        self._is_proven = False
        self.is_refused = False
        self._is_paused = True
        self._is_holding = False
        self._checked = _to_check(list(parameters.values()))
        self._reason: str | None = None
        self.clear()

    # ---- as a source of small batches

    @property
    def reason(self) -> str | None:
        """Why the last backward could not be taken apart; None where it could."""
        return self._reason

    def pause(self, is_paused: bool) -> None:
        """Put the model's own forward back, or ours."""
        self._is_paused = is_paused or self.is_refused
        if not self._is_paused:
            self._model.forward = _InParts(self)
        elif isinstance(self._model.__dict__.get("forward"), _InParts):
            if self._own_forward is None:
                del self._model.forward
            else:
                self._model.forward = self._own_forward

    def hold(self, is_holding: bool) -> None:
        """Keep the gradients of parts until a marked small batch is over, or no longer."""
        self._is_holding = is_holding

    def clear(self) -> None:
        """Forget what was captured."""
        self._parts: list[_Part] = []
        self._sums: dict[int, Tensor] = {}
        self._seen: set[int] = set()
        self._is_missing = False
        self._wrong: list[Tensor] = []

    def see_gradient(self, index: int, gradient: Tensor) -> None:
        """Compare a parameter's gradient with what its parts have added to it."""
        if index not in self._seen:
            self._is_missing = True  # it came by another way than through a part, as from reentrant checkpointing
            return
        self._seen.remove(index)
        if index in self._checked:
            whole = values_that_count(gradient)
            rest = (whole - values_that_count(self._sums.pop(index))).float().square().sum()
            self._wrong.append(rest > _allowed(whole) ** 2 * whole.float().square().sum())

    def take(self) -> list[tuple[Tensor, SmallBatchSize]]:
        """Σ |s|² of each parameter, [P], and the examples of each part; NaN where the parts do not add up."""
        taken = [(part.pending.take(), part.num_examples) for part in self._parts]
        self._reason = self._why_not()
        entries = [(found[1], SmallBatchSize(size)) for found, size in taken if found is not None]
        if entries and self._wrong:
            is_wrong = torch.stack(self._wrong).any()
            entries = [(sq_norm_P.masked_fill(is_wrong, torch.nan), size) for sq_norm_P, size in entries]
        self.clear()
        return entries

    def _why_not(self) -> str | None:
        if self.is_refused:
            return "the model runs whole"
        if self._is_missing:
            return "gradients came by another way than parts of a forward: a single example, or reentrant checkpointing"
        if not all(part.pending.is_complete for part in self._parts):
            return "two backward passes went through one forward"
        return None

    def remove(self) -> None:
        """Leave nothing on the model."""
        self.pause(True)
        self.clear()

    # ---- as a forward

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The model's output for all examples."""
        sizes = self._sizes(args, kwargs)
        if sizes is None:
            return self.plain(*args, **kwargs)
        num_before = len(self._parts)
        try:
            if not self._is_proven:
                self._prove(args, kwargs, sizes)
            return self._in_parts(args, kwargs, sizes)
        except NotSeparableError as reason:
            logger.warning("split measures nothing: %s; the model runs as without", reason)
        except Exception as fault:  # noqa: BLE001  # the hook body: one of the client's three
            self._on_fault(fault)  # if it is the model's own, it comes again below
        self.is_refused = True
        del self._parts[num_before:]
        return self.plain(*args, **kwargs)

    def _sizes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[int] | None:
        if self._is_paused or self.is_refused or not torch.is_grad_enabled() or torch.compiler.is_compiling():
            return None
        if torch._C._current_graph_task_id() != NO_BACKWARD and not self._parts:
            return None  # reentrant checkpointing ran the forward without gradients, and so without parts
        tensors = [tensor for tensor in tensors_in([args, kwargs]) if tensor.dim()]
        if not tensors or tensors[0].shape[0] < 2:
            return None
        return part_sizes(tensors[0].shape[0], self._num_parts)

    def _in_parts(self, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: Sequence[int]) -> Any:
        # Non-reentrant checkpointing runs the forward again inside the backward: the same parts, but not for us.
        is_again = torch._C._current_graph_task_id() != NO_BACKWARD
        outputs = []
        for size, piece in zip(sizes, cut((args, kwargs), sizes), strict=True):
            part = _Part(size, PendingGradients(list(self._parameters.values())))
            if not is_again:
                self._parts.append(part)
            views = self._views(None if is_again else part)
            outputs.append(torch.func.functional_call(self.plain, views, *piece))
        return join(outputs, sizes)

    def _views(self, part: "_Part | None") -> dict[str, Tensor]:
        """The parameters as one part sees them, by their names in `_Plain`."""
        views = {}
        for index, (name, parameter) in enumerate(self._parameters.items()):
            view = parameter.view_as(parameter)
            if part is not None:
                view.register_hook(functools.partial(self._see, part, index))
            views[f"model.{name}"] = view
        return views

    def _see(self, part: "_Part", index: int, gradient: Tensor) -> None:
        if self._is_paused:
            return
        try:
            self._seen.add(index)
            part.pending.add(index, gradient, may_reduce=not self._is_holding)
            if index in self._checked:
                before = self._sums.get(index)
                self._sums[index] = gradient.detach().clone() if before is None else before + gradient.detach()
        except Exception as fault:  # noqa: BLE001  # the hook body: one of the client's three
            self._on_fault(fault)

    def _prove(self, args: tuple[Any, ...], kwargs: dict[str, Any], sizes: Sequence[int]) -> None:
        """Look once whether the parts give the output of the whole, without dropout, gradients or running statistics.

        Raises:
            NotSeparableError: If they do not.
        """
        modes = {module: module.training for module in self._model.modules()}
        devices = sorted({p.device.index or 0 for p in self._parameters.values() if p.is_cuda})
        try:
            for module in modes:
                module.training = False
            with torch.no_grad(), torch.random.fork_rng(devices=devices):
                whole = self.plain(*args, **kwargs)
                pieces = cut((args, kwargs), sizes)
                parts = join([self.plain(*of_args, **of_kwargs) for of_args, of_kwargs in pieces], sizes)
        finally:
            for module, is_training in modes.items():
                module.training = is_training
        if not all(map(_are_close, tensors_in(whole), tensors_in(parts))):
            raise NotSeparableError("the parts of a batch give another output than the whole batch")
        self._is_proven = True


class _Part:
    """One small batch: its examples and its gradients."""

    def __init__(self, num_examples: int, pending: PendingGradients) -> None:
        self.num_examples = num_examples
        self.pending = pending


class _Plain(nn.Module):
    """A model's own forward, without its hooks, as a module whose parameters can be replaced for one call."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.own = model.forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the model itself returns."""
        return self.own(*args, **kwargs)


class _InParts:
    """The forward that a model has while it is split; copied or pickled it becomes the model's own."""

    def __init__(self, split: Split) -> None:
        self._split = split

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._split.forward(args, kwargs)

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial, (self._split.plain.own,)


def _to_check(parameters: Sequence[Tensor]) -> set[int]:
    """The small parameters, or the smallest: the others would cost time."""
    small = {index for index, p in enumerate(parameters) if p.numel() <= SMALL}
    return small or {min(range(len(parameters)), key=lambda index: parameters[index].numel())}


def _allowed(values: Tensor) -> float:
    return MISMATCH * (30 if values.element_size() == 2 else 1)


def _are_close(whole: Tensor, parts: Tensor) -> bool:
    if whole.shape != parts.shape:
        return False
    if not whole.is_floating_point() or not whole.numel():
        return torch.equal(whole, parts)
    difference = (whole.double() - parts.double()).abs().max()
    return bool(difference <= _allowed(whole) * whole.double().abs().max())
