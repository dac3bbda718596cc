"""Hooks on parameters and on the watched model, while a step is measured.

One of the client's three `except Exception` is here: a fault of ours inside a hook is reported, never raised into the
backward pass.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from noisescale.capture.data_parallel.job import DataParallelJob, RemovableHandle
from noisescale.capture.duty_cycle import DutyCycle
from noisescale.capture.forwards import FollowedForward, FollowedForwards
from noisescale.capture.hooks.model_calls import see_calls
from noisescale.capture.small_batches.accumulation import Accumulation
from noisescale.capture.small_batches.main_gradients import MainGradients
from noisescale.capture.small_batches.small_model import SmallModelAccumulation

if TYPE_CHECKING:
    from noisescale.capture.hooks.exchange import RankExchange

NO_BACKWARD = -1
"""What torch calls the backward that runs while none does."""

ENTRY_SECONDS = 1.5e-6
"""What autograd spends to call a Python hook, which the hook itself cannot time."""

CALL_SECONDS = 0.5e-6
"""What a model or an optimizer spends to call one."""

OnFault = Callable[[Exception], None]


def guard(on_fault: OnFault, body: Callable[..., None], *args: Any) -> None:
    """Run the body of a hook; a fault of ours is reported and not raised.

    Args:
        on_fault: Told about it.
        body: Of the hook.
        args: For the body.
    """
    try:
        body(*args)
    except Exception as fault:  # noqa: BLE001  # the hook body: one of the client's three
        on_fault(fault)


class Hooks:
    """Hooks that tell an `Accumulation` what happens; between measured steps there are none.

    Args:
        model: Its forwards tell the number of examples.
        parameters: In the order of their indices.
        accumulation: Told about gradients and ends of backward passes.
        job: Knows where gradients can be seen.
        exchange: Told about ends of backward passes, too; None where there is one rank.
        duty: Told what our part of a step costs.
        on_fault: Told about our own faults.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Sequence[Tensor],
        accumulation: Accumulation,
        job: DataParallelJob,
        exchange: "RankExchange | None",
        duty: DutyCycle,
        *,
        on_fault: OnFault,
    ) -> None:
        self._model = model
        self._parameters = parameters
        self._accumulation = accumulation
        self._job = job
        self._exchange = exchange
        self._duty = duty
        self._report = on_fault
        # Private names of torch, but the ones that its own data-parallel code rests on; without them see `_see`.
        self._queue_callback = getattr(torch.autograd.Variable._execution_engine, "queue_callback", None)
        self._graph_task_id = getattr(torch._C, "_current_graph_task_id", lambda: NO_BACKWARD)
        self._open_backwards: set[int] = set()
        self._tasks: list[int] = []
        self._followed = FollowedForwards(self._graph_task_id)
        self._newest_forward: FollowedForward | None = None
        self._small_model = accumulation if isinstance(accumulation, SmallModelAccumulation) else None
        self._after_backward = self._guarded(self._end_of_backward)
        self._put_back_handles: list[RemovableHandle] = []
        self._forward_handle: RemovableHandle | None = None

    def _on_fault(self, fault: Exception) -> None:
        """Leave the step without an estimate, as a part of it may be missing, and report."""
        self._accumulation.fail()
        self._report(fault)

    def arm(self, is_measured: bool) -> None:
        """Put the hooks of a measured step on, or take them off."""
        if is_measured == self.are_on:
            return
        if not is_measured:
            self._disarm()
            return
        self._job.arm([self._leaf_hook(index) for index in range(len(self._parameters))])
        forward_hook = ExampleCountHook(self._model, self._guarded(self._forward))
        # In a small model a hook on each output would cost a tenth of the step; see `SmallModelAccumulation`.
        is_followed = self._small_model is None and self._queue_callback is not None
        output_hook = OutputHook(self._model, self._guarded(self._follow)) if is_followed else None
        self._forward_handle = see_calls(self._model, forward_hook, output_hook)
        main = self._accumulation.main
        if main is not None and self._queue_callback is not None:
            main.turn_on()
            self._put_back_handles = [
                p.register_post_accumulate_grad_hook(self._guarded(self._put_back, main, index, entry=ENTRY_SECONDS))
                for index, p in enumerate(self._parameters)
                if p.requires_grad
            ]

    def _put_back(self, main: MainGradients, index: int, _: Tensor) -> None:
        main.put_back(index)

    @property
    def are_on(self) -> bool:
        """Whether the current step is measured."""
        return self._forward_handle is not None

    def _leaf_hook(self, index: int) -> Callable[[Tensor], None]:
        if self._small_model is not None:
            return self._small_model.lists.hook(index)
        if self._queue_callback is None:
            return self._guarded(self._see_without_callback, index, entry=ENTRY_SECONDS)
        see = self._guarded(self._see, index, entry=ENTRY_SECONDS)
        # while steps are timed, each call of ours is
        return see if self._duty.is_timing else self._accumulation.pending.hook(index, see, self._graph_task_id)

    def _disarm(self) -> None:
        if self._small_model is not None:
            self._small_model.lists.forget()
        self._job.disarm()
        if self._accumulation.main is not None:
            self._accumulation.main.turn_off()
        for handle in self._put_back_handles:
            handle.remove()
        self._put_back_handles = []
        for parameter in self._parameters:
            # As it was before the first hook: an empty dictionary would be asked at every backward.
            if parameter._backward_hooks is not None and not parameter._backward_hooks:
                parameter._backward_hooks = None
            if getattr(parameter, "_post_accumulate_grad_hooks", None) == {}:
                parameter._post_accumulate_grad_hooks = None  # type: ignore[assignment]  # torch's own default
        if self._forward_handle is not None:
            self._forward_handle.remove()
            self._forward_handle = None

    def remove(self) -> None:
        """Take every hook off; nothing of ours stays on the model."""
        self._disarm()

    def settle(self, *, is_last: bool = False) -> None:
        """Close what a backward left open: one without an end-of-backward callback, or one that failed half-way.

        Of a step that is not measured there is nothing to close.

        Args:
            is_last: The step is about to be logged.
        """
        if not self.are_on:
            return
        if self._small_model is not None:
            num_passes = self._small_model.settle(is_last=is_last)
            if self._duty.is_timing:
                self._duty.add_cost(ENTRY_SECONDS * num_passes * len(self._parameters))
        elif self._open_backwards:
            self._open_backwards.clear()
            self._accumulation.break_off()
        elif self._queue_callback is None:
            self._accumulation.end_backward()
            self._accumulation.remember_gradient()

    def _guarded(self, body: Callable[..., None], *bound: Any, entry: float = CALL_SECONDS) -> Callable[..., None]:
        if self._duty.is_timing:
            return functools.partial(self._timed, entry, body, *bound)
        return functools.partial(guard, self._on_fault, body, *bound)

    def _timed(self, entry: float, body: Callable[..., None], *args: Any) -> None:
        if not self._duty.is_timing:
            guard(self._on_fault, body, *args)
            return
        start = time.perf_counter()
        guard(self._on_fault, body, *args)
        self._duty.add_cost(time.perf_counter() - start + entry)

    def _see(self, index: int, gradient: Tensor | None) -> None:
        if gradient is None:  # a function of the user's gives none
            return
        task = self._graph_task_id()
        if task not in self._open_backwards:
            self._open_backward(task, index)
        self._accumulation.see_gradient(index, gradient)

    def _open_backward(self, task: int, index: int) -> None:
        assert self._queue_callback is not None
        if not self._open_backwards:
            self._accumulation.begin_backward(index, task)
            self._tasks = []
        self._tasks.append(task)
        self._queue_callback(self._guarded(self._close_backward, task))
        self._open_backwards.add(task)

    def _close_backward(self, task: int) -> None:
        self._open_backwards.discard(task)
        # Reentrant checkpointing nests backward passes: only the outermost ends the small batch.
        if not self._open_backwards:
            if self._exchange is not None:
                self._exchange.before_averaging()
            self._accumulation.end_backward([forward for one in self._tasks for forward in self._followed.of_task(one)])
            assert self._queue_callback is not None
            # Behind the callbacks of others: DistributedDataParallel writes the gradients once more in its own.
            self._queue_callback(self._after_backward)

    def _end_of_backward(self) -> None:
        self._accumulation.remember_gradient()
        if self._exchange is not None:
            self._exchange.end_of_backward()

    def _see_without_callback(self, index: int, gradient: Tensor | None) -> None:
        if gradient is None:
            return
        if self._accumulation.pending.holds(index):
            self._accumulation.end_backward()
            self._accumulation.remember_gradient()
        if self._accumulation.pending.is_empty:
            self._accumulation.begin_backward(index)
        self._accumulation.see_gradient(index, gradient)

    def _forward(self, num_examples: float | None, is_training: bool) -> None:
        if self._graph_task_id() != NO_BACKWARD:
            return  # checkpointing runs the forward again, inside the backward
        small = self._small_model
        if small is not None and small.keeps_pace():  # of one process, so that nobody else has to know
            small.see_forward(num_examples, is_training=is_training, num_followed=len(small.forwards))
            return
        self.settle()
        forward = self._accumulation.see_forward(num_examples, is_training=is_training)
        self._newest_forward = forward if self._accumulation.is_following else None
        self._job.see_forward()
        if self._exchange is not None:
            self._exchange.advance()

    def _follow(self, inputs: object, output: object) -> None:
        forward, self._newest_forward = self._newest_forward, None
        if forward is not None:
            self._followed.follow(forward, inputs, output)

    def end_step(self, then: Callable[[], None]) -> None:
        """The optimizer has made a step.

        Args:
            then: What else ends with it; its time counts as ours.
        """
        if self._duty.is_timing:
            self._timed(CALL_SECONDS, self._end_step, then)
        else:
            self._end_step(then)

    def _end_step(self, then: Callable[[], None]) -> None:
        if self._forward_handle is not None:  # a step that is not measured has microseconds only
            if self._open_backwards:
                self._open_backwards.clear()
                self._accumulation.break_off()
            if self._small_model is not None:
                self._small_model.lists.forget()
        then()


class ExampleCountHook:
    """Reads the number of examples from the model's input.

    It lives in the user's module, so it must not come along: pickled or deep-copied, it becomes a standard-library
    function that does nothing, and a saved model loads where this package is not installed.
    """

    def __init__(self, model: nn.Module, see: Callable[[float | None, bool], None]) -> None:
        self._model = model
        self._see = see

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Count a forward that will be followed by a backward."""
        # While torch.compile traces, the hook must be empty: a counter would make it compile again at each step.
        if torch.compiler.is_compiling() or module is not self._model or not torch.is_grad_enabled():
            return
        self._see(leading_dimension([*args, *kwargs.values()] if kwargs else args), module.training)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


class OutputHook:
    """Shows what the model was given and returns; it does not come along where the module is copied, either."""

    def __init__(self, model: nn.Module, see: Callable[[object, object], None]) -> None:
        self._model = model
        self._see = see

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: object) -> None:
        """Show a forward that was counted."""
        if not torch.compiler.is_compiling() and module is self._model and torch.is_grad_enabled():
            self._see([*args, *kwargs.values()], output)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (contextlib.nullcontext(), "__exit__")


def leading_dimension(arguments: Sequence[object]) -> float | None:
    """Length of the first dimension of the first tensor, looked for one level deep; None where there is none."""
    if arguments and type(arguments[0]) is Tensor and arguments[0].dim():
        return arguments[0].shape[0]
    for argument in arguments:
        for candidate in _tensors_in(argument):
            if candidate.dim():
                return candidate.shape[0]
    return None


def _tensors_in(argument: object) -> list[Tensor]:
    inner: Sequence[object] = [argument]
    if isinstance(argument, Mapping):
        inner = list(argument.values())
    elif isinstance(argument, list | tuple):
        inner = argument
    return [item for item in inner if isinstance(item, Tensor)]
