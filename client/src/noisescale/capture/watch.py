"""Watches one model and its optimizer, and hands out the squared norms of each measured step."""

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

from noisescale.capture.data_parallel.job import DataParallelJob, OneProcess
from noisescale.capture.data_parallel.rank_part import StepParts
from noisescale.capture.data_parallel.recognise import explain_alone, plain_names, recognise, show_sharded
from noisescale.capture.duty_cycle import UNASKED_OVERHEAD, DutyCycle
from noisescale.capture.forwards import Pairing
from noisescale.capture.hooks.exchange import RankExchange
from noisescale.capture.hooks.hooks import Hooks, guard
from noisescale.capture.hooks.nested_steps import once_an_update
from noisescale.capture.kinds.choice import make_kinds
from noisescale.capture.kinds.kind import Kind
from noisescale.capture.parameter_groups import TrainedParameters, group_parameters
from noisescale.capture.path.look_plan import share_of_looks
from noisescale.capture.path.optimizer_facts import rate_of
from noisescale.capture.path.promise import NAME as PROMISE
from noisescale.capture.path.promise import StepPromise, promise_of
from noisescale.capture.path.update_path import UpdatePath, follow
from noisescale.capture.small_batches.accumulation import Accumulation
from noisescale.capture.small_batches.gradient_rows import GradientRows
from noisescale.capture.small_batches.small_model import SmallModelAccumulation
from noisescale.capture.sources.chosen_source import ChosenSource
from noisescale.capture.step import Idle, Step
from noisescale.capture.sums.device_values import HeldNorms, device_name
from noisescale.capture.values.recent_gradients import RecentGradients
from noisescale.capture.values.sent_step import GradientStates, LossScale, pack_step
from noisescale.capture.values.step_queue import StepQueue
from noisescale.capture.watch_options import CoupledExamples, WatchOptions, watched_parameters

Tag = TypeVar("Tag")

WATCH_ANEW = "call run.unwatch() and watch() again"
"""What to do where the watch cannot follow by itself."""


class Watch(Generic[Tag]):
    """The steps of one optimizer, from hooks to squared norms.

    Args:
        model: Parameters that require a gradient now are measured.
        optimizer: Its `step()` ends a step; None: `log_step()` does.
        options: Checked.
        on_fault: Told about our own faults inside hooks.
        on_duty: Told when a budget has fixed how often steps are measured.
        on_source: Told when the small batches come from somewhere else from now on; groups may have changed.

    Attributes:
        group_names: Layers in network order.
        num_steps: Optimizer steps that are over; the current step has this number. Steps that the loop makes by hand,
            or that a loss scaler skips, count where they were logged.
        optimizer_name: Class of the optimizer; None without one.
        device_name: Where the parameters are, as people call it.
        model: Whose they are.
        parameters: Those measured.
        duty: Which steps are measured.
        notes: Facts about the measurement, in words.
        sent: Logged steps on their way to the host; they can be taken after `close()`, too.
        kind_names: Further kinds of noise scale.
        job: The data-parallel job that the model belongs to.
        path: How far the optimizer's updates lead; None where that is not measured.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None,
        options: WatchOptions,
        *,
        on_fault: Callable[[Exception], None],
        on_duty: Callable[[DutyCycle], None],
        on_source: Callable[[], None],
    ) -> None:
        options.check()
        show_sharded(model)
        parameters = watched_parameters(model, optimizer)
        self.num_steps = self._num_optimizer_steps = 0
        self.optimizer_name = None if optimizer is None else type(optimizer).__name__
        self.device_name = device_name(next(iter(parameters.values())).device)
        self._coupled = CoupledExamples(model)
        self.notes: list[str] = list(self._coupled.notes)
        self.model = model
        self._options = options
        self._optimizer = optimizer
        self._on_duty = on_duty
        self._looks = 0.0 if optimizer is None or not options.judge_rate else share_of_looks(options.overhead)
        self.duty = self._new_duty(options.overhead, agree=self._agree)
        self._on_fault = on_fault
        self._on_source = on_source
        self._scale = LossScale(options.scaler, optimizer)
        self._kinds = make_kinds(options.kinds, list(parameters.values()), optimizer)
        self.kind_names = list(self._kinds)
        self._read_kinds: dict[str, Kind] = dict(self._kinds)
        self.sent: StepQueue[Tag] = StepQueue(self._read_kinds)
        self.path: UpdatePath | None = None
        self._states = GradientStates(options)
        self._is_odd = False
        self._chosen = ChosenSource(model, optimizer, options, on_fault=on_fault, duty=lambda: self.duty)
        self._trained = TrainedParameters(model, optimizer)
        self._pairing = Pairing()
        self._begin(parameters)
        self.notes += [*self.job.notes, *explain_alone(self.job)]
        if self._accumulation.main is not None:
            self.notes.append("accumulate='fp32': gradients are added up in 32 bit, in another order than autograd's")
        if self.job.num_ranks > 1:
            self._chosen.share_with_ranks(self.job.num_ranks, is_by_rank=self.job.is_by_rank)
        # one for as long as the watch lasts: a program's own hooks are called in the same loop, whose list must stay
        after_step = functools.partial(guard, on_fault, lambda *_: self._hooks.end_step(self._on_step))
        self._step_handles = []
        if optimizer is not None:
            self._step_handles.append(optimizer.register_step_post_hook(once_an_update(optimizer, after_step)))
        # of all that the optimizer holds, of which the norms may cover a part
        if self._looks:
            self.path = follow(self._held(), optimizer, self.job, on_fault, self._looks)
        self._meet_path()

    def _new_duty(self, overhead: float | None, agree: Callable[[int], int] = lambda every: every) -> DutyCycle:
        clock = time.perf_counter
        return DutyCycle(
            self._options.every, overhead, on_fixed=self._on_duty, clock=clock, agree=agree, looks=self._looks
        )

    def _begin(self, parameters: Mapping[str, Tensor]) -> None:
        """Measure these parameters, from the small batches that the options name or that turn out to be there."""
        parameters = self._chosen.begin(parameters)
        self.notes += self._chosen.messages()
        self._start(parameters)

    @property
    def estimator(self) -> str:
        """Where the small batches come from, in the words of the wire format."""
        return self._chosen.estimator

    @property
    def says(self) -> str:
        """What is measured, as a sentence for the log."""
        return self._chosen.says

    @property
    def takes_examples(self) -> bool:
        """Whether each example is a small batch from the next step on, as steps turned out to have one backward."""
        return self._chosen.takes_examples

    @property
    def covered_share(self) -> float:
        """Elements that are measured ÷ all that are trained."""
        return self._chosen.covered_share

    def _follow_training(self) -> None:
        """Other parameters are trained than before: measure those from the next step on."""
        if self.job.num_ranks > 1 or self._kinds:
            self.notes.append("the optimizer trains other parameters now, and those before are measured: " + WATCH_ANEW)
        else:
            self._hooks.remove()
            self._begin(watched_parameters(self.model, self._optimizer))
            self.notes.append(f"from step {self.num_steps} on other parameters are trained, and those are measured")
            if self.path is not None:
                self.path.watch(self._held())
        self._on_source()

    def _start(self, parameters: Mapping[str, Tensor]) -> None:
        """Put the hooks on for these parameters."""
        self.parameters = list(parameters.values())
        is_by_rank = self._options.small_batches == "ranks"
        found = recognise(self.model, parameters, is_by_rank=is_by_rank)
        self.job: DataParallelJob = found or OneProcess(self.parameters)
        if found is not None:
            self._options.check_job(self.job.name)
        in_fp32 = self._options.accumulate == "fp32"
        names = plain_names(parameters, is_wrapped=self.job.name == "ddp")
        self.group_names, group_of_parameter = group_parameters(names, self._options.groups)
        self._promise: StepPromise | None = None
        if self._options.judge_rate:
            self._promise = promise_of(
                self.parameters,
                self._held(),
                self._optimizer,
                self.job,
                sees_small_batches=found is None and self._chosen.source is None,
                are_equal=self._options.weighting == "equal",
                may_look=lambda: not self.duty.is_timing,
            )
        self._meet_path()
        kinds = [*self._kinds.values(), *self._kinds_of_promise()]
        is_plain = found is None and not (self._kinds or self._chosen.source or self._is_odd or in_fp32)
        if is_plain and GradientRows.suits(self.parameters):
            self._accumulation: Accumulation = SmallModelAccumulation(
                self.parameters, group_of_parameter, len(self.group_names), kinds
            )
        else:
            self._accumulation = Accumulation(
                self.parameters,
                group_of_parameter,
                len(self.group_names),
                kinds,
                source=self._chosen.source,
                local_gradients=self.job.local_gradients,
                counts_only=is_by_rank,
                is_alone=found is None,
                in_fp32=in_fp32,
                pairing=self._pairing,
            )
        self._recent: RecentGradients | None = None
        if found is None and self._chosen.source is not None:
            self._recent = RecentGradients(self.parameters, group_of_parameter, self._chosen.source)
        sums = self.job.sums
        self._exchange = None if sums is None else RankExchange(self.job, sums, self._accumulation, self._step_number)
        self.sent.exchange = self._exchange
        self._hooks = Hooks(
            self.model,
            self.parameters,
            self._accumulation,
            self.job,
            self._exchange,
            self.duty,
            on_fault=self._on_fault,
        )
        self._arm()

    def _kinds_of_promise(self) -> Sequence[StepPromise]:
        """The promise as a kind; the terms of steps on their way are read by whichever there was."""
        if self._promise is None or not self._promise.sees_small_batches:
            return ()
        self._read_kinds[PROMISE] = self._promise
        return (self._promise,)

    def _meet_path(self) -> None:
        """Let the path say when to look at what updates promise."""
        if self.path is not None:
            self.path.promise = self._promise
            if self._promise is not None:
                self._promise.path = self.path

    def _arm(self) -> None:
        is_measured = self.duty.is_measured()
        self._hooks.arm(is_measured)
        self._chosen.pause(not is_measured)

    def close(self) -> None:
        """Take the hooks off."""
        self._hooks.remove()
        self._chosen.remove()
        while self._step_handles:
            self._step_handles.pop().remove()
        if self.path is not None:
            self.path.close()

    def _switch_to_examples(self, parameters: Mapping[str, Tensor]) -> None:
        self._hooks.remove()
        self.notes += self._chosen.messages()
        if self._options.every == 1 and self._options.overhead is None:
            # Nobody asked for the extra work of per-example norms: keep it small.
            self.duty = self._new_duty(UNASKED_OVERHEAD)
        self._start(parameters)
        self._on_source()

    def _held(self) -> list[Tensor]:
        return list(watched_parameters(self.model, self._optimizer).values())

    def _restart(self) -> None:
        self._hooks.remove()
        self._start(watched_parameters(self.model, self._optimizer))

    @property
    def _step(self) -> Step:
        return self._accumulation.step

    @property
    def is_idle(self) -> bool:
        """Whether the step is not measured, not logged yet, and none before it is on its way but those held."""
        state = self._accumulation.step.state
        return isinstance(state, Idle) and state.may_pass

    @property
    def is_measured(self) -> bool:
        """Whether the current step is measured."""
        return self.duty.is_measured()

    def learning_rate(self) -> float | None:
        """Of the optimizer's first parameter group; None where reading it would wait for the device."""
        return None if self._optimizer is None else rate_of(self._optimizer.param_groups[0])

    @contextlib.contextmanager
    def unhooked(self) -> Iterator[None]:
        """Backward passes and forwards inside are not seen, and are no part of the step."""
        self._hooks.settle()
        are_on = self._hooks.are_on
        self._hooks.arm(is_measured=False)
        self._chosen.pause(True)
        try:
            yield
        finally:
            self._hooks.arm(are_on)
            self._chosen.pause(not are_on)

    def is_of(self, model: nn.Module, optimizer: torch.optim.Optimizer | None) -> bool:
        """Whether this model and this optimizer are the watched ones."""
        return self.model is model and self._optimizer is optimizer

    def has_logged_this_step(self) -> bool:
        """Whether this step was logged before, with neither an optimizer step nor cleared gradients since."""
        if self._step.is_logged and self._hooks.are_on:
            self._hooks.settle()  # the gradients may have been cleared since, and computed anew
        self.num_steps += self._step.number()
        return self._step.is_logged

    def log_step(self, tag: Tag, *, batch_size: float | None, loss: Tensor | float | None) -> None:
        """Close the step: its numbers start their way to the host under this tag.

        Args:
            tag: Comes back with the norms.
            batch_size: Examples of the step; None: read from the model's input.
            loss: One number, anywhere.
        """
        self._hooks.settle(is_last=True)
        accumulation = self._accumulation
        self._chosen.look_for_examples(len(accumulation.gathered.sizes), are_coupled=self._coupled.are_there)
        scale = self._scale.now()
        is_unscaled = scale is not None and self._scale.is_undone()
        if self._exchange is None or not self.job.has_shards:  # shards were measured at the end of the backward
            accumulation.look_at_gradient(scale if is_unscaled else None)
        over_ranks = None if self._exchange is None else self._exchange.parts_of_step()
        norms = self._norms(over_ranks)
        gathered = accumulation.gathered
        is_whole = norms is not None and over_ranks is None and not accumulation.gradient.has_ignored
        has_kinds, is_plain = is_whole and not is_unscaled, is_whole and scale is None
        sent, vector = pack_step(
            tag,
            batch_size=batch_size,
            sizes=gathered.sizes,
            norms=norms,
            kinds=gathered.kinds if has_kinds else (),
            scale=None if norms is None and over_ranks is None else scale,
            other_values=accumulation.gradient.witness.has_other_values(),
            loss=loss,
            state=self._states.of_step(
                gathered,
                is_unscaled=is_unscaled,
                are_coupled=self._coupled.are_coupled,
                estimator=self.estimator,
            ),
            distances=self._recent.look(gathered.sizes) if self._recent is not None and is_plain else None,
            over_ranks=over_ranks,
        )
        self.sent.send(sent, vector)
        is_its_own = over_ranks is None and (is_unscaled or scale is None)
        self._step.log(norms if is_its_own else None)
        if self._promise is not None:
            is_known = self.duty.is_measured() and not accumulation.gradient.has_ignored
            self._promise.see_logged(self.num_steps if is_known else None, len(gathered.sizes))
        accumulation.remember_gradient()
        if self._chosen.has_news():
            self.notes += self._chosen.messages()
            self._on_source()
        if self._optimizer is None:
            self._on_step()

    def _norms(self, over_ranks: StepParts | None) -> Tensor | HeldNorms | None:
        """Σ |s|² of each entry and |ḡ|²; |ḡ|² alone where the sums are over ranks; None of no small batches."""
        if over_ranks is not None:
            is_needed = over_ranks.parts and not over_ranks.has_shards
            return self._accumulation.big_sq_norms()[None] if is_needed else None
        norms = self._accumulation.norms() if self._accumulation.gathered.sizes else None
        if self.duty.is_timing and isinstance(norms, HeldNorms):
            norms.synchronize()  # in the step that is timed
        return norms

    def skip_step(self) -> None:
        """Log a step that is idle."""
        self._step.log()
        if self._optimizer is None:
            self._on_step()

    def begin_micro_batch(self) -> None:
        """Several backward passes from here on are one small batch."""
        self._hooks.settle()
        self._step.mark(True)
        self._chosen.hold(True)

    def end_micro_batch(self, num_examples: float | Tensor | None) -> None:
        """Close the marked small batch; nothing where its beginning was refused."""
        if self._step.section.is_marked:
            self._hooks.settle()
            self._step.mark(False)
            self._accumulation.end_small_batch(num_examples)
            self._chosen.hold(False)
            if self._exchange is not None:
                self._exchange.send_if_due()

    def ignore(self, is_ignoring: bool) -> None:
        """Leave backward passes out from here on, or no longer."""
        self._hooks.settle()
        self._step.ignore(is_ignoring)
        self._chosen.pause(is_ignoring or not self.is_measured)

    def measured_norm(self, parameters: Sequence[Tensor]) -> Tensor | None:
        """The norm of the step's gradient as it was measured, where it is that of `p.grad` of these parameters now."""
        # Ranks that clip by norms rounded differently drift apart, so in their jobs torch's own norm is used.
        if self._step.norms is None or self.job.num_ranks > 1 or self._accumulation.gradient.has_ignored:
            return None
        is_same = {id(p) for p in parameters} == {id(p) for p in self.parameters}
        self._hooks.settle(is_last=True)  # there may have been backward passes since
        self._accumulation.look_at_gradient()
        norms = self._step.norms
        if norms is None or not (is_same and self._step.gathered.adds_up and self._scale.is_undone()):
            return None
        norms_KC = norms.tensor() if isinstance(norms, HeldNorms) else norms
        return norms_KC[-1, 0].sqrt().to(self.parameters[0].dtype)

    def _agree(self, every: int) -> int:
        """The same k on every rank: the mean of what they would choose. Once in a run it waits for them."""
        agreed = None if self.job.sums is None else self.job.sums.agree(self._num_optimizer_steps, every)
        return every if agreed is None else math.ceil(agreed)

    def _step_number(self) -> int:
        """The same on every rank; without an optimizer only `log_step()` counts, which one rank alone may call."""
        return 0 if self._optimizer is None else self._num_optimizer_steps

    def _on_step(self) -> None:
        self.num_steps += 1
        self._num_optimizer_steps += 1
        if not self._hooks.are_on and self.duty.skips_next():
            self._step.rest(may_pass=self.sent.may_wait)
            return
        accumulation = self._accumulation
        if self._hooks.are_on:
            accumulation.end_step()
        else:
            self._step.begin(accumulation.gathered)
        self.duty.end_step()
        if self._chosen.give_up():
            self._restart()
            self._on_source()
        if isinstance(accumulation, SmallModelAccumulation) and accumulation.is_at_a_loss:
            self._is_odd = True
            self._pairing.follow_for_good()
            self._restart()
        examples = self._chosen.turn_to_examples()
        if examples is not None:
            self._switch_to_examples(examples)
        if self._trained.have_changed():
            self._follow_training()
        self._arm()
        if not self._hooks.are_on:
            self._step.rest(may_pass=self.sent.may_wait)
