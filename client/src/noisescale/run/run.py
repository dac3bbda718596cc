"""Run, the one object a training loop touches: capture -> estimators -> transport."""

import contextlib
import dataclasses
import functools
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Unpack

from noisescale import ask, capture
from noisescale.config import Config, without_password
from noisescale.description import RunDescription
from noisescale.guard import Faults, never_raises
from noisescale.mirrors.mirroring import Mirroring
from noisescale.mirrors.trackers import Mirror
from noisescale.options import Arithmetic, Loss, inside, takes_older
from noisescale.outbox import Outbox
from noisescale.run import ending
from noisescale.run.ending import result_line
from noisescale.run.log_calls import LogCalls
from noisescale.track.recorder import OpenOutbox, Recorder
from noisescale.track.recorders import Recorders
from noisescale.track.results import MetricHistory
from noisescale.transport.wire import RunRecord
from noisescale.window.recent_updates import NoiseScale
from noisescale.window.standing import Standing
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict
from noisescale_core.advice.words.of_the_rate import NO_VERDICT
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from noisescale.capture.clipping import Clipping
    from noisescale.capture.parameter_groups import Grouping
    from noisescale.capture.watch_options import Kind, SmallBatches
    from noisescale_core.advice.question import Asked

FINISH_SECONDS = 10.0


class Run(LogCalls):
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
            ending.add(self)

    def _open_own_outbox(self, run_id: str, describe: Callable[[], RunRecord]) -> Outbox:
        return Outbox(run_id, self.config, describe, self.faults.report)

    def _recorder_beside(self, run_id: str, description: RunDescription) -> Recorder:
        return Recorder(run_id, self.config, description, self._open_outbox, self.faults)

    def __repr__(self) -> str:
        return f"<noisescale.Run {self._main.description.project}/{self._main.description.task} {self.id}>"

    def _repr_html_(self) -> str | None:
        """The run as a notebook shows it: its noise scale, its course, what to do about the batch; asks no server."""
        self._do(self._main.collect)
        return self._advisor.card(self._main)

    @property
    def url(self) -> str | None:
        """The run's page, once the server has its first record; None where nothing is sent."""
        return f"{without_password(self.config.url)}/runs/{self.id}" if self.config.mode == "online" else None

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

    @takes_older(
        {
            **inside("loss", Loss, "weighting", loss_reduction="reduction"),
            **inside("arithmetic", Arithmetic, "split", "accumulate", "fused_norm_layers"),
        }
    )
    def watch(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | None" = None,
        *,
        loss: Loss | None = None,
        small_batches: "SmallBatches" = "auto",
        kinds: "Kind | Sequence[Kind]" = (),
        every: int = 1,
        overhead: float | None = None,
        scaler: "torch.amp.GradScaler | None" = None,
        arithmetic: Arithmetic | None = None,
        groups: "Grouping" = "layer",
        log_every: int | None = None,
        judge_rate: bool = True,
        name: str | None = None,
    ) -> None:
        """Measure the gradients of this model from the next backward on.

        In a data-parallel job every rank calls this, and waits here for the others; see `docs/data_parallel.md`.

        Args:
            model: Parameters that require a gradient now are measured.
            optimizer: Its `step()` ends an optimizer step, and what it does not hold is not measured; without one
                `log_gradients()` ends the step.
            loss: How the loop forms the loss that backward starts from; None: a mean over examples, and micro-batches
                weighed by their sizes.
            every: Measure every so many optimizer steps; between them nothing of ours is on the model.
            overhead: Share of the training's time that measuring may cost, such as 0.01: the first steps are timed,
                then `every` is chosen and said.
            small_batches: Where the small batches come from. "auto": data-parallel ranks and micro-batches as the job
                has them, per-example norms where there is neither and the layers allow it. "ranks": each rank's own
                gradient is one, which is cheaper where micro-batches are many.
            scaler: The loop's GradScaler: its scale is undone, and the log may come after `unscale_()`.
            kinds: One or several further kinds of noise scale, each a series of its own: "adam", "sign", "spectral".
            arithmetic: What may change the training's own arithmetic; None: not a bit of it.
            groups: "layer", "none", or a function from parameter name to the name of its group.
            log_every: Updates per row sent; None: as in the settings.
            judge_rate: Look at some of the optimizer's updates, for `learning_rate()`: how long they are, and how far
                they have led.
            name: For each optimizer a name of its own, where there are several; the first is this run, each further
                one a run beside it.

        Raises:
            ConfigError: For wrong arguments, or while another optimizer of that name is watched and no step of it was
                logged. Later another model takes its place, and an older run that has trained this model is finished.
        """
        listed: Sequence[Kind] = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        formed, changed = loss or Loss(), arithmetic or Arithmetic()
        options = capture.WatchOptions(
            loss_reduction=formed.reduction,
            groups=groups,
            every=every,
            overhead=overhead,
            small_batches=small_batches,
            split=changed.split,
            scaler=scaler,
            weighting=formed.weighting or "by_size",
            kinds=listed,
            fused_norm_layers=changed.fused_norm_layers,
            accumulate=changed.accumulate,
            judge_rate=judge_rate,
        )
        if self.is_recording:
            ending.end_those_of(model, but=self)
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

    # ---- clipping

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

    def learning_rate(self, name: str | None = None) -> RateVerdict:
        """Whether the learning rate is too low, right or too high, how far off and how sure; print it.

        It comes from the path of the parameters in this process. A server that knows earlier runs of the task, at
        several learning rates, reads it against them; it is asked for a few seconds at most (`docs/learning_rate.md`).

        Args:
            name: Of the optimizer, where several are watched.
        """
        recorder = self._recorders.find(name)
        if recorder is None:
            self.faults.report(self._recorders.unknown(name))
            return RateVerdict(None, NO_VERDICT, str(self._recorders.unknown(name)))
        self._do(recorder.collect)
        found = recorder.learning_rate()
        return self._advisor.learning_rate(recorder, found) if self.config.mode == "online" else found

    def standing(self, name: str | None = None) -> Standing | None:
        """Where the run stands in this process, for what changes its batch or rate; None for an unknown name.

        Args:
            name: Of the optimizer, where several are watched.
        """
        recorder = self._recorders.find(name)
        if recorder is None:
            self.faults.report(self._recorders.unknown(name))
            return None
        self._do(recorder.collect)
        return recorder.standing()

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
        ending.discard(self)

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
