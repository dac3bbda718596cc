"""Run, the one object a training loop touches: capture -> estimators -> transport."""

import contextlib
import dataclasses
import functools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Unpack

from noisescale import ask, capture, open_runs
from noisescale.config import Config
from noisescale.description import RunDescription
from noisescale.given_norms import mean_of_small
from noisescale.guard import Faults, never_raises
from noisescale.integrations.mirrors import Mirror
from noisescale.metric_history import MetricHistory
from noisescale.mirroring import Mirroring
from noisescale.outbox import Outbox
from noisescale.recent_updates import NoiseScale
from noisescale.recorder import OpenOutbox, Recorder
from noisescale.recorders import Recorders
from noisescale.result_line import result_line
from noisescale.transport.wire import RunRecord
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from noisescale.capture.clipping import Clipping
    from noisescale.capture.parameter_groups import Grouping
    from noisescale.capture.step_norms import Weighting
    from noisescale.capture.watch_options import Accumulate, Kind, LossReduction, SmallBatches
    from noisescale_core.advice.question import Asked
    from noisescale_core.estimators.nested_groups import NestedSizes, Tree

FINISH_SECONDS = 10.0


class Run:
    """One training run: what `noisescale.init()` returns.

    After `watch()` nothing here raises into the training, nothing waits for the device or the network, and loss and
    gradients are bit-identical with and without. Only `noise_scale()` and `finish()` do more than a few microseconds.

    Attributes:
        id: UUID of the run, in every address of the server.
        config: Settings of the client.
        faults: Our own errors so far; `faults.count` should be 0.
        is_finished: Nothing more is recorded.
        is_recording: Neither disabled nor finished.

    Args:
        config: Settings of the client.
        description: What the run is called and made of.
        open_outbox: Opens what takes the records; None: as the settings say.
        mirror: Is shown the newest noise scale, too.
    """

    def __init__(
        self,
        config: Config,
        description: RunDescription,
        open_outbox: OpenOutbox | None = None,
        *,
        mirror: Mirror | None = None,
    ) -> None:
        self.id = config.run_id or str(uuid.uuid4())
        self.config = config
        self.faults = Faults(is_strict=config.strict)
        self.is_finished = False
        self._mirror = mirror
        self._open_outbox = open_outbox or (self._open_own_outbox if config.mode != "disabled" else None)
        mirroring = None if mirror is None else Mirroring(mirror, time.monotonic, self.faults)
        self._main = Recorder(self.id, config, description, self._open_outbox, self.faults, mirroring)
        self._recorders = Recorders(self._main, self._recorder_beside)
        self._clippings: dict[str | None, Clipping] = {}
        self.is_recording = self._main.is_recording
        if self.is_recording:
            open_runs.add(self)

    def _open_own_outbox(self, run_id: str, describe: Callable[[], RunRecord]) -> Outbox:
        return Outbox(run_id, self.config, describe, self.faults.report)

    def _recorder_beside(self, run_id: str, description: RunDescription) -> Recorder:
        return Recorder(run_id, self.config, description, self._open_outbox, self.faults)

    def leave_out(self, call: str) -> None:
        """Say once that a finished run records nothing more."""
        if self.is_finished and call.startswith("log_") and self.config.mode != "disabled":
            self._main.say_once("finished", f"{call}() after finish() is left out: noisescale.init() begins a new run")

    def __repr__(self) -> str:
        return f"<noisescale.Run {self._main.description.project}/{self._main.description.task} {self.id}>"

    @property
    def description(self) -> RunDescription:
        """What the run is called and made of."""
        return self._main.description

    @property
    def is_watching(self) -> bool:
        """Whether hooks of ours are on a model."""
        return any(recorder.watch is not None for recorder in self._recorders.all())

    def has_trained(self, model: "torch.nn.Module") -> bool:
        """Whether steps of this model were logged, and it is watched still."""
        return any(
            one.watch is not None and one.watch.model is model and one.has_logged_watched
            for one in self._recorders.all()
        )

    def is_over_for(self, model: "torch.nn.Module") -> bool:
        """Whether another model was trained: to watch this one begins another training."""
        first = self._main
        return first.has_logged_watched and first.watch is not None and first.watch.model is not model

    def successor(self) -> "Run":
        """A new run of the same description, for the next training of a process; this one is finished."""
        self.finish()
        config = dataclasses.replace(self.config, run_id=None)
        return Run(config, self.description, mirror=self._mirror)

    def __enter__(self) -> "Run":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.finish("finished" if kind is None else "failed")

    # ---- watching

    def watch(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | None" = None,
        *,
        loss_reduction: "LossReduction" = "mean_over_examples",
        groups: "Grouping" = "layer",
        log_every: int | None = None,
        every: int = 1,
        overhead: float | None = None,
        small_batches: "SmallBatches" = "auto",
        split: int | None = None,
        scaler: "torch.amp.GradScaler | None" = None,
        weighting: "Weighting" = "by_size",
        kinds: "Kind | Sequence[Kind]" = (),
        fused_norm_layers: bool = False,
        accumulate: "Accumulate" = "autograd",
        name: str | None = None,
    ) -> None:
        """Measure the gradients of this model from the next backward on.

        In a data-parallel job every rank calls this, and waits here for the others; see `docs/data_parallel.md`.

        Args:
            model: Parameters that require a gradient now are measured.
            optimizer: Its `step()` ends an optimizer step, and what it does not hold is not measured; without one
                `log_gradients()` ends the step.
            loss_reduction: How the loss that backward starts from is reduced over the examples of a step.
            groups: "layer", "none", or a function from parameter name to the name of its group.
            log_every: Updates per row sent; None: as in the settings.
            every: Measure every so many optimizer steps; between them nothing of ours is on the model.
            overhead: Share of the training's time that measuring may cost, such as 0.01: the first steps are timed,
                then `every` is chosen and said.
            small_batches: Where the small batches come from. "auto": data-parallel ranks and micro-batches as the job
                has them, per-example norms where there is neither and the layers allow it. "ranks": each rank's own
                gradient is one, which is cheaper where micro-batches are many.
            split: Cut each forward of the model into so many small batches. This changes the arithmetic: sums are
                added in another order, and BatchNorm sees smaller batches.
            scaler: The loop's GradScaler: its scale is undone, and the log may come after `unscale_()`.
            weighting: How the loop weighs micro-batches of different sizes; "by_size" makes its gradient the mean over
                all examples (or counted tokens), "equal" does not.
            kinds: One or several further kinds of noise scale, each a series of its own: "adam", "sign", "spectral".
            fused_norm_layers: Per-example norms from a backward of LayerNorm and RMSNorm of our own: rounding changes.
            accumulate: "fp32": micro-batches are added up in 32 bit by the pass that measures them. This changes the
                arithmetic: gradients of 16 bit are the rounding of such sums, for 4 bytes a parameter.
            name: For each optimizer a name of its own, where there are several; the first is this run, each further
                one a run beside it.

        Raises:
            ConfigError: For wrong arguments, or while another optimizer of that name is watched and no step of it was
                logged. Later another model takes its place, and an older run that has trained this model is finished.
        """
        listed: Sequence[Kind] = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        options = capture.WatchOptions(
            loss_reduction, groups, every, overhead, small_batches, split, scaler, weighting, listed, fused_norm_layers,
            accumulate,
        )  # fmt: skip
        if self.is_recording:
            open_runs.end_those_of(model, but=self)
            self._recorders.start(
                model, optimizer, name, lambda recorder: recorder.start_watch(model, optimizer, options, log_every)
            )
        self._clippings[name] = capture.Clipping(model, optimizer)

    @never_raises
    def _do(self, action: Callable[[], None]) -> None:
        action()

    def unwatch(self) -> None:
        """Take every hook off the models and their optimizers."""
        self._do(self._recorders.unwatch)

    @contextlib.contextmanager
    def micro_batch(self, num_examples: "float | torch.Tensor | None" = None) -> Iterator[None]:
        """All backward passes inside count as one small batch.

        Args:
            num_examples: Its size, where sizes differ; counted units such as unmasked tokens are fine, they are taken
                as shares of the `batch_size` that is logged; also as one number on the device, where it is not waited
                for. None: read from the model's input.
        """
        self._do(lambda: self._recorders.begin_micro_batch(num_examples))
        try:
            yield
        finally:
            self._do(lambda: self._recorders.end_micro_batch(num_examples))

    @contextlib.contextmanager
    def ignore(self, name: str | None = None) -> Iterator[None]:
        """Backward passes inside are left out, from the small batches and from the step's gradient alike.

        Gradients that you clear again count as left out only when cleared with `set_to_none=True`, PyTorch's default.

        Args:
            name: Left out for the optimizer of that name only; None: for all.
        """
        self._do(lambda: self._recorders.ignore(name, True))
        try:
            yield
        finally:
            self._do(lambda: self._recorders.ignore(name, False))

    # ---- logging

    @never_raises
    def log_gradients(
        self,
        loss: "torch.Tensor | float | None" = None,
        batch_size: float | None = None,
        lr: float | None = None,
        step: int | None = None,
        name: str | None = None,
    ) -> None:
        """Record this optimizer step: after the last backward, before clipping and `optimizer.step()`.

        A second call before the next `optimizer.step()` is left out, unless the gradients were cleared in between. A
        call after `optimizer.step()` finds no backward and records no estimate. Steps that are not logged are fine.
        With a `GradScaler` that `watch()` does not know call it before `scaler.unscale_(optimizer)`, too. In a
        data-parallel job one rank may call it or all; the first one sends, and nobody waits for another.

        Args:
            loss: Of the step; one number, also on the device, where it is read later.
            batch_size: Global batch in examples; None: the leading dimension of the model's first tensor argument,
                summed over the step.
            lr: None: of the optimizer's first parameter group.
            step: Number of the optimizer step; None: counted.
            name: Of the optimizer, where several are watched.
        """
        recorder = self._main if name is None else self._recorders.named(name)
        watch = recorder.watch
        if watch is None or not watch.duty.is_timing:
            recorder.log_gradients(loss, batch_size, lr, step)
            return
        start = time.perf_counter()
        recorder.log_gradients(loss, batch_size, lr, step)
        watch.duty.add_cost(time.perf_counter() - start)

    @never_raises
    def log_norms(
        self,
        *,
        small_batch_size: float,
        big_batch_size: float,
        big_sq_norm: float,
        small_sq_norm: "float | Sequence[float] | None" = None,
        sum_small_sq_norm: float | None = None,
        num_small: int | None = None,
        step: int | None = None,
        loss: float | None = None,
        lr: float | None = None,
        layers: "Mapping[str, tuple[float, float]] | None" = None,
    ) -> None:
        """Record a step whose squared gradient norms you measured, in any framework.

        Args:
            small_batch_size: Examples per small batch.
            big_batch_size: Examples of the step.
            big_sq_norm: |G_B|² of the whole batch's mean gradient, before clipping.
            small_sq_norm: Mean of |G_B|² over the small batches (mean of squares, not square of a mean); or a list of
                them, such as one a rank.
            sum_small_sq_norm: Their sum instead, as an all-reduce over the ranks gives it; needs `num_small`.
            num_small: Small batches in the step; None: as many as were given, or big_batch_size / small_batch_size.
            step: Number of the optimizer step; None: counted.
            loss: Of the step.
            lr: Learning rate.
            layers: (small_sq_norm as a mean, big_sq_norm) of each layer by its name, the same layers at each step.
        """
        mean, num_small = mean_of_small(small_sq_norm, sum_small_sq_norm, num_small)
        self._main.log_norms(
            small_batch_size=small_batch_size,
            big_batch_size=big_batch_size,
            small_sq_norm=mean,
            big_sq_norm=big_sq_norm,
            num_small=num_small,
            step=step,
            loss=loss,
            lr=lr,
            layers=layers,
        )

    @never_raises
    def log_nested_norms(
        self,
        sum_sq_norms: "Mapping[str, float]",
        big_sq_norm: float,
        sizes: "NestedSizes | Sequence[Tree]",
        *,
        step: int | None = None,
        loss: float | None = None,
        lr: float | None = None,
    ) -> None:
        """Record a step of groups inside groups, such as prompts and their rollouts, with the noise of each level.

        The noise scale is that of a batch which grows by more of the coarsest groups. What the units of a group share
        at each level goes into metrics: "noise/prompt", "noise/rollout".

        Args:
            sum_sq_norms: Σ n |g|² over the groups of each level by its name, the coarsest first: n units in a group, g
                their mean gradient. Sums over ranks simply add.
            big_sq_norm: |ḡ|² of the whole step's mean gradient, before clipping.
            sizes: Units of the finest groups, nested as the groups are: [[4, 4], [4, 3]] are two prompts of two groups
                of rollouts each; or a `NestedSizes`, which adds over ranks.
            step: Number of the optimizer step; None: counted.
            loss: Of the step.
            lr: Learning rate.
        """
        self._main.log_nested_norms(sum_sq_norms, big_sq_norm, sizes, step=step, loss=loss, lr=lr)

    @never_raises
    def log_hessian(
        self,
        losses: "Sequence[Callable[[], torch.Tensor]]",
        sizes: "Sequence[float] | None" = None,
        curvature_loss: "Callable[[], torch.Tensor] | None" = None,
        step: int | None = None,
        name: str | None = None,
    ) -> None:
        """Measure kind `hessian` at this point of the training, by Hessian-vector products; a series of its own.

        Neither `p.grad` nor random numbers nor buffers change, and the step that runs is measured as without. It costs
        K gradients and K products, a few backward passes each, with a curvature loss; K (K - 1) products without. So
        call it now and then: every 100th step, say.

        Args:
            losses: Each computes the mean loss of one small batch, a forward without backward. At least 2, or 3
                without a curvature loss.
            sizes: Their examples; None: all equal, and one each.
            curvature_loss: The mean loss of examples that are in none of the small batches; None: each small batch in
                turn gives the curvature for the others.
            step: Number of the optimizer step; None: the one that runs.
            name: Of the optimizer, where several are watched.
        """
        self._recorders.named(name).log_hessian(losses, sizes, curvature_loss, step)

    @never_raises
    def log_metrics(self, /, step: int | None = None, **values: float) -> None:
        """Record evaluation loss, accuracy, score or whatever else belongs to a step.

        Args:
            step: Number of the optimizer step; None: the newest.
            values: Numbers by name; one that is not finite is kept as "none". A tensor on a device is waited for.
        """
        if values:
            self._main.log_metrics(step, values)

    def clip_grad_norm_(
        self, max_norm: float, parameters: "Iterable[torch.Tensor] | None" = None, name: str | None = None
    ) -> "torch.Tensor":
        """Clip the gradients, with the norm that this step's `log_gradients()` has measured anyway.

        It saves the pass that `torch.nn.utils.clip_grad_norm_` makes; the norm is more exact, so the result is equal
        to rounding and not bit for bit. Where nothing was measured, or the gradients have changed since, it calls that
        function; so it does the first three times, to compare.

        Args:
            max_norm: Largest norm afterwards.
            parameters: None: those that the watched optimizer holds.
            name: Of the optimizer, where several are watched.

        Returns:
            The norm before clipping.

        Raises:
            ConfigError: For an optimizer that was never watched.
        """
        clipping = self._clippings.get(name) or (next(iter(self._clippings.values()), None) if name is None else None)
        if clipping is None:
            raise ConfigError("clip_grad_norm_() knows no parameters before watch(model, optimizer)")
        return clipping.clip(max_norm, parameters, functools.partial(self._measured_norm, name))

    @never_raises
    def _measured_norm(self, name: str | None, parameters: "Sequence[torch.Tensor]") -> "torch.Tensor | None":
        watch = self._recorders.named(name).watch
        return None if watch is None else watch.measured_norm(parameters)

    # ---- results

    def noise_scale(self, kind: str = "simple", name: str | None = None) -> NoiseScale:
        """The noise scale of the latest window: last 5 % of the steps, at least 8; print it.

        Args:
            kind: "simple", or one that `watch()` was asked for.
            name: Of the optimizer, where several are watched.
        """
        recorder = self._recorders.find(name)
        if recorder is None:
            self.faults.report(self._recorders.unknown(name))
            return NoiseScale.of_nothing()
        self._do(recorder.collect)
        return recorder.noise_scale(kind)

    @functools.cached_property
    def _advisor(self) -> "ask.Advisor":
        """Loads theory and HTTP, which a job that never asks for advice need not."""
        return ask.Advisor(self.config, self.faults)

    def recommendation(self, name: str | None = None, **asked: "Unpack[Asked]") -> "ask.Recommendation":
        """Which batch size now, why, how sure, and what it would change; print it.

        With a server it is asked, for at most a few seconds; else it is computed from what this job has measured.

        Args:
            name: Of the optimizer, where several are watched.
            asked: What a step is worth, and what limits the run: see `docs/recommendations.md`.
        """
        recorder = self._recorders.find(name)
        if recorder is None:
            self.faults.report(self._recorders.unknown(name))
            return ask.Recommendation(reason=str(self._recorders.unknown(name)))
        self._do(recorder.collect)
        return self._advisor.recommend(recorder, asked)

    @property
    def logged_metrics(self) -> MetricHistory:
        """What `log_metrics()` was given in this process, at most some thousand values of each name."""
        return self._main.metrics

    @property
    def newest_step(self) -> int:
        """The last optimizer step that was logged; 0 before the first."""
        return self._main.newest_step

    def finish(
        self, status: Literal["finished", "failed"] = "finished", timeout_seconds: float = FINISH_SECONDS
    ) -> None:
        """Deliver what is left, for at most so long; the run takes nothing more.

        Where no server was ever reached it does not wait. It says the noise scale, what to do, and where the run is.

        Args:
            status: How the training ended.
            timeout_seconds: Longest wait.
        """
        for recorder in self._recorders.all():
            self._do(functools.partial(self._finish, recorder, status, timeout_seconds))
        self.is_finished, self.is_recording = True, False
        open_runs.discard(self)

    def _finish(self, recorder: Recorder, status: str, timeout_seconds: float) -> None:
        where = recorder.finish(status, timeout_seconds)
        if where is None:
            return
        if recorder.has_logged:
            # a server that has all records knows more of the task than the job does
            advice = self._advisor.recommend(recorder, {}, is_of_job=where.page is None)
            recorder.say(result_line(recorder.description.task, recorder.noise_scale("simple"), advice, str(where)))
        elif where.folder is not None:
            recorder.say(str(where))
