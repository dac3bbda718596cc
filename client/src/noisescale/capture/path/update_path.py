"""Watches the updates of an optimizer, and hands out how long they are and how far they have led.

At a look the parameters are sketched before and after `optimizer.step()`, whatever the optimizer does in it: the
difference, less decoupled weight decay, is the update. Nothing is written to, and no random number of the training is
drawn.
"""

# G groups of parameters, M buckets

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from noisescale.capture.data_parallel.job import DataParallelJob, RemovableHandle
from noisescale.capture.hooks.hooks import OnFault, guard
from noisescale.capture.hooks.nested_steps import once_an_update
from noisescale.capture.path.count_sketch import CountSketch
from noisescale.capture.path.look_plan import SHARE, LookPlan
from noisescale.capture.path.optimizer_facts import decay_of, momentum_of
from noisescale.capture.sums.device_values import DeviceValues

if TYPE_CHECKING:
    from noisescale.capture.data_parallel.rank_sums import RankSum
    from noisescale.capture.path.promise import StepPromise

GuardHook = Callable[[Callable[..., None]], Callable[..., None]]
"""Makes a hook that never raises."""

MAX_WAITING = 64
"""Looks that nobody has asked for yet, as where steps are not logged: each keeps a sketch."""

TIMED = 9
"""Looks and steps whose median is the time of one."""


class Look(NamedTuple):
    """One update that was looked at.

    Attributes:
        number: Of the update, from 0.
        sq_norm: |u|², without decoupled weight decay.
        sq_distance: |θ - θ_0|² after it.
        moved_sq: |θ - θ'|² from after the look before it to before it.
        sq_size: |θ|² after it.
        momentum: Of the optimizer.
        decay: Largest share that decoupled weight decay took.
        generation: Which θ_0 the distance is from.
        sketch_before: Of the parameters before the update, [G, M].
    """

    number: int
    sq_norm: float
    sq_distance: float
    moved_sq: float
    sq_size: float
    momentum: float
    decay: float
    generation: int
    sketch_before: Tensor


class _Sent(NamedTuple):
    number: int
    momentum: float
    decay: float
    generation: int
    sketch_before: Tensor


class UpdatePath:
    """The looks at the updates of one optimizer.

    Args:
        parameters: Those of its parameters that are watched.
        optimizer: Whose updates they are.
        job: Where ranks hold shards, their parts are added up.
        guard: Makes hooks that never raise.
        share: Of the training's time that looks may take.

    Attributes:
        num_updates: Steps of the optimizer so far.
        promise: Looks at what its updates promise; None where that cannot be measured.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        optimizer: torch.optim.Optimizer,
        *,
        job: DataParallelJob,
        guard: GuardHook,
        share: float = SHARE,
    ) -> None:
        self.num_updates = 0
        self.promise: StepPromise | None = None
        self._optimizer = optimizer
        self._job = job
        self._plan = LookPlan(share)
        self._generation = 0
        self._is_working = False
        self._before_GM: Tensor | None = None
        self._after_GM: Tensor | None = None
        self._start_GM: Tensor | None = None
        self._kept: tuple[str, list[list[float]]] | None = None
        self._values: DeviceValues[_Sent] = DeviceValues()
        self._waiting: deque[tuple[_Sent, RankSum]] = deque()
        self._is_cuda = parameters[0].is_cuda
        self._clock = None if job.has_shards else _Clock()
        self._decays: list[float | Tensor] = []
        self.watch(parameters)
        self._before_update, self._awaits_gradients = guard(self._before), False
        self._handles: list[RemovableHandle] = [
            optimizer.register_step_pre_hook(once_an_update(optimizer, self._begin_step)),
            optimizer.register_step_post_hook(once_an_update(optimizer, guard(self._after))),
        ]

    def watch(self, parameters: Sequence[Tensor]) -> None:
        """Follow these parameters from the next update on, from where they are then."""
        held = {id(parameter) for parameter in parameters}
        optimized = [[p for p in group["params"] if id(p) in held] for group in self._optimizer.param_groups]
        self._groups = [place for place, group in enumerate(optimized) if group]
        # of shards that several ranks hold each counts as its part
        self._share = self._job.shares()[0] if self._job.has_shards else 1.0
        rank = torch.distributed.get_rank() if self._job.has_shards else 0
        self._sketch = CountSketch([optimized[place] for place in self._groups], seed=rank << 20)
        self._start_GM = self._after_GM = None
        # it may be called by a hook between the two of a look, which is given up then
        self._before_GM, self._is_working = None, False
        self._generation += 1

    def close(self) -> None:
        """Take the hooks off."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    # ---- hooks

    def _begin_step(
        self, _: torch.optim.Optimizer, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Look before the update; where a closure makes its gradients, as Lightning's does, when that has ended."""
        # while torch.compile traces, the hook must be empty: a counter would make it compile again at each step
        if torch.compiler.is_compiling():
            return None
        rest = given[1:]
        closure: Any = rest[0] if rest else named.get("closure")
        self._awaits_gradients = callable(closure)
        if not callable(closure):  # what some optimizers take first is none
            self._before_update()
            return None

        def with_look() -> Any:
            loss = closure()
            if self._awaits_gradients:
                self._awaits_gradients = False
                self._before_update()
            return loss

        return ((given[0], with_look, *rest[1:]), named) if rest else (given, named | {"closure": with_look})

    def _before(self) -> None:
        if self._before_GM is not None:  # the update of the last look ended in an error
            self._before_GM, self._is_working = None, False
        number = self.num_updates
        is_look = self.looks_at_next and not self._is_working
        self.num_updates = number + 1
        if is_look:
            self._look_before()
        if self.promise is not None:
            self.promise.before_update(number, is_look=is_look)

    @property
    def looks_at_next(self) -> bool:
        """Whether the update that comes next is looked at."""
        return self.num_updates == self._plan.next

    def add_look_seconds(self, seconds: float) -> None:
        """Count time that something else has taken at a look."""
        if self._clock is not None:
            self._clock.add(seconds)

    def _look_before(self) -> None:
        if self.is_captured() or len(self._values) + len(self._waiting) >= MAX_WAITING:
            self._plan.advance()
            return
        self._is_working = True  # after a fault it stays so, and nothing more is looked at
        if self._clock is not None:
            self._clock.begin_look()
        self._plan.advance()
        groups = [self._optimizer.param_groups[place] for place in self._groups]
        self._decays = [decay_of(self._optimizer, group) for group in groups]
        self._before_GM = self._sketch.now()
        if self._start_GM is None:
            self._start_GM = self._kept_start() if self._kept is not None else None
            self._start_GM = self._before_GM if self._start_GM is None else self._start_GM
        if self._clock is not None:
            self._clock.pause_look()

    def _after(self, *_: Any) -> None:
        if self._awaits_gradients:  # nobody called the closure: where the update began is not known
            self._awaits_gradients = False
            if self.looks_at_next:
                self._plan.advance()
            self.num_updates += 1
        before_GM, self._before_GM = self._before_GM, None
        clock = self._clock
        if before_GM is None:
            if clock is not None:
                clock.end_step()
            return
        if clock is not None:
            clock.resume_look()
        after_GM = self._sketch.now()
        last_GM, self._after_GM = self._after_GM, after_GM
        assert self._start_GM is not None
        # row by row: a vector of the decays would have to be copied to the device, which waits for it
        updates = [
            after_M - before_M * (1.0 - decay)
            for after_M, before_M, decay in zip(after_GM, before_GM, self._decays, strict=True)
        ]
        values = torch.stack(
            [
                _sq(torch.stack(updates)),
                _sq(after_GM - self._start_GM),
                _sq(before_GM - (before_GM if last_GM is None else last_GM)),
                _sq(after_GM),
            ]
        )
        self._send(values * self._share, before_GM)
        if clock is not None:
            clock.end_look()
            clock.adapt(self._plan)
        self._is_working = False

    def is_captured(self) -> bool:
        """Whether a CUDA graph records the step: what we launched would run at each replay."""
        return self._is_cuda and torch.cuda.is_current_stream_capturing()

    def _send(self, values: Tensor, before_GM: Tensor) -> None:
        group = self._optimizer.param_groups[self._groups[0]]
        decay = max((float(one) for one in self._decays if not isinstance(one, Tensor)), default=0.0)
        sent = _Sent(self.num_updates - 1, momentum_of(group), decay, self._generation, before_GM)
        if self._job.has_shards and self._job.sums is not None:
            self._waiting.append((sent, self._job.sums.send(sent.number, values)))
        else:
            self._values.send(sent, values)

    # ---- results

    def arrived(self) -> list[Look]:
        """Looks whose numbers are on the host, oldest first; never waits."""
        found = [_look(sent, values) for sent, values in self._values.arrived()]
        if self._waiting and self._job.sums is not None:
            self._job.sums.advance()
        while self._waiting and self._waiting[0][1].is_there:
            sent, sums = self._waiting.popleft()
            values = sums.values()
            if values is not None:
                found.append(_look(sent, values))
        return found

    def drain(self) -> list[Look]:
        """All of them; waits for the device, and for other ranks for a few seconds: for the end of a run only."""
        if self._waiting and self._job.sums is not None:
            self._job.sums.drain()
        return [*(_look(sent, values) for sent, values in self._values.drain()), *self.arrived()]

    def begin_again(self, before_GM: Tensor) -> int:
        """Take these parameters for θ_0, as they were changed by something else than an update.

        Args:
            before_GM: Their sketch.

        Returns:
            The generation of looks whose distance is from there.
        """
        self._start_GM = before_GM
        self._generation += 1
        return self._generation

    # ---- over a resume

    def start(self) -> tuple[str, list[list[float]]] | None:
        """θ_0's sketch and what it is of, to go on from in another process; None before the first look."""
        return None if self._start_GM is None else (self._sketch.layout, self._start_GM.tolist())

    def go_on_from(self, layout: str, sketch: list[list[float]]) -> bool:
        """Take θ_0 from an earlier process; whether it is of parameters like these.

        To be called before the first update.
        """
        if layout != self._sketch.layout or self.num_updates:
            return False
        self._kept = layout, sketch
        return True

    def _kept_start(self) -> Tensor | None:
        assert self._kept is not None
        (layout, sketch), self._kept = self._kept, None
        assert self._before_GM is not None
        return self._before_GM.new_tensor(sketch) if layout == self._sketch.layout else None


def follow(
    parameters: Sequence[Tensor],
    optimizer: torch.optim.Optimizer | None,
    job: DataParallelJob,
    on_fault: OnFault,
    share: float = SHARE,
) -> UpdatePath | None:
    """The path of an optimizer; None on several devices, on ranks that hold what the first one does, and without one.

    Args:
        parameters: That it holds.
        optimizer: Whose updates are followed.
        job: That the parameters belong to.
        on_fault: Told about our own faults.
        share: Of the training's time that looks may take.
    """
    is_one_device = len({parameter.device for parameter in parameters}) == 1
    is_here = len(set(job.shares())) == 1 if job.has_shards else job.is_first
    if optimizer is None or not is_one_device or not is_here:
        return None
    return UpdatePath(parameters, optimizer, job=job, guard=partial(partial, guard, on_fault), share=share)


def _sq(sketch_GM: Tensor) -> Tensor:
    return (sketch_GM * sketch_GM).sum()


def _look(sent: _Sent, values: Sequence[float]) -> Look:
    sq_norm, sq_distance, moved_sq, sq_size = values
    return Look(
        sent.number, sq_norm, sq_distance, moved_sq, sq_size, sent.momentum, sent.decay, sent.generation,
        sent.sketch_before,
    )  # fmt: skip


class _Clock:
    """How long looks and steps take the host; what a look takes a device beside that is not waited for."""

    def __init__(self) -> None:
        self._looks: deque[float] = deque(maxlen=TIMED)
        self._steps: deque[float] = deque(maxlen=TIMED)
        self._began = self._spent = self._others = 0.0
        self._last_end: float | None = None

    def begin_look(self) -> None:
        self._began, self._spent = time.perf_counter(), 0.0

    def add(self, seconds: float) -> None:
        self._others += seconds

    def pause_look(self) -> None:
        self._spent = time.perf_counter() - self._began

    def resume_look(self) -> None:
        self._began = time.perf_counter()

    def end_look(self) -> None:
        now = time.perf_counter()
        self._looks.append(self._spent + now - self._began + self._others)
        self._others = 0.0
        self._last_end = now

    def end_step(self) -> None:
        """A step without a look is over."""
        now = time.perf_counter()
        if self._last_end is not None:
            self._steps.append(now - self._last_end)
        self._last_end = now

    def adapt(self, plan: LookPlan) -> None:
        if len(self._looks) == len(self._steps) == TIMED:
            plan.adapt(median(self._looks), median(self._steps))
