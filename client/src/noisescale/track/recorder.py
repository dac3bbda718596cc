"""What one run sends: its rows, layers, further kinds and metrics; a run has one recorder for each optimizer."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noisescale.config import Config
from noisescale.description import RunDescription, checked_metric_name
from noisescale.guard import Faults, Notices
from noisescale.mirrors.mirroring import Mirroring
from noisescale.notices.explanations import SUMMED, is_sum
from noisescale.outbox import Outbox, Whereabouts
from noisescale.rows.updates import LoggedStep, Update, plain_number
from noisescale.track.further_kinds import FurtherKinds
from noisescale.track.given_log import GivenLog
from noisescale.track.one_at_a_time import one_at_a_time
from noisescale.track.path_log import keeper_of
from noisescale.track.results import MeasuredRun, MetricHistory, Results
from noisescale.track.step_counter import checked_step
from noisescale.track.step_log import StepLog
from noisescale.track.stream_description import StreamDescription
from noisescale.track.watching import Watching
from noisescale.transport.wire import FinishRecord, MetricRecord, Record, RunRecord
from noisescale.window.recent_updates import NoiseScale, Outlook
from noisescale.window.standing import Standing
from noisescale_core.advice.learning_rate.rate_verdict import RateVerdict
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from noisescale.capture.sums.step_norms import StepNorms
    from noisescale.capture.watch import Watch
    from noisescale.capture.watch_options import WatchOptions

OpenOutbox = Callable[[str, Callable[[], RunRecord]], Outbox]
"""From a run's id and what describes its stream to where its records go."""


class Recorder:
    """The records of one run.

    Args:
        run_id: UUID of the run.
        config: Settings of the client.
        description: What the run is called and made of.
        open_outbox: Opens a stream; None: nothing is recorded.
        faults: Told about our own errors.
        mirroring: Is shown the newest noise scale; None: nobody is.

    Attributes:
        run_id: UUID of the run.
        description: What the run is called and made of.
        metrics: What was logged as metrics.
        given: Takes steps whose norms the script has measured; its caller holds `lock`.
        lock: Held while a step is logged and while a thread reads: what one adds is never half there for the other.
    """

    def __init__(
        self,
        run_id: str,
        config: Config,
        description: RunDescription,
        open_outbox: OpenOutbox | None,
        faults: Faults,
        mirroring: Mirroring | None = None,
    ) -> None:
        self.run_id = run_id
        self.description = description
        self.metrics = MetricHistory()
        self.lock = one_at_a_time(self)
        self._config = config
        self._faults = faults
        self._mirroring = mirroring
        self._notices = Notices()
        self._stream = StreamDescription()
        self._outlook = Outlook(self._notices)
        self._has_ended = False
        self._started_at = time.time()
        self._clock_to_unix = self._started_at - time.monotonic()
        self._kinds = FurtherKinds(
            self._open_outbox_of,
            self._run_record,
            example=lambda: self.description.example,
            now=self.now,
            notices=self._notices,
        )
        self._open_outbox = open_outbox
        self._outbox = None if open_outbox is None else self._open_outbox_of("simple")
        self._log = StepLog(
            self._send,
            self.now,
            self._notices,
            group_seconds=config.group_seconds,
            log_every=config.log_every,
            on_norms=self._on_norms,
            path_keeper=keeper_of(config, run_id),
        )
        self._watching = Watching(self._log, self._kinds, self._stream, self._notices, faults, self._describe_again)
        self._results = Results(self._log, self._kinds, self._stream, self._watching, self._notices)
        self.given = GivenLog(self._log, self._stream, show=self._show, log_metrics=self.log_metrics)

    @property
    def is_recording(self) -> bool:
        """Whether there is anywhere to send to."""
        return self._outbox is not None

    def say(self, message: str) -> None:
        """Say a sentence, unless another rank of the job does."""
        self._notices.say(message)

    def say_once(self, key: str, message: str) -> None:
        """Say a sentence unless it was said."""
        self._notices.once(key, message)

    # ---- watching

    def start_watch(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | None",
        options: "WatchOptions",
        log_every: int | None,
    ) -> None:
        """Measure a model from the next backward on.

        Raises:
            ConfigError: For what cannot be watched.
        """
        with self.lock:
            self._watching.start(model, optimizer, options, self._config.log_every if log_every is None else log_every)
            assert self.watch is not None
            self.description = replace(self.description, device=self.description.device or self.watch.device_name)

    @property
    def watch(self) -> "Watch[LoggedStep] | None":
        """What measures the gradients; None before it is started."""
        return self._watching.watch

    @property
    def has_logged_watched(self) -> bool:
        """Whether steps were logged since the model is watched."""
        return self._watching.has_logged

    def watches(self) -> "list[Watch[Any]]":
        """All that see the model's backward passes."""
        return self._watching.watches()

    def unwatch(self) -> None:
        """Take every hook off the model and its optimizer."""
        with self.lock:
            self._watching.end()

    def _open_outbox_of(self, kind: str) -> Outbox:
        assert self._open_outbox is not None
        return self._open_outbox(self.run_id, lambda: self._run_record(kind))

    # ---- logging

    def log_gradients(
        self, loss: "torch.Tensor | float | None", batch_size: float | None, lr: float | None, step: int | None
    ) -> None:
        """Record an optimizer step; see `Run.log_gradients`."""
        with self.lock:
            watch = self._watching.watch
            if watch is not None and watch.is_idle and self._log.skip(watch, loss, lr, step):
                return
            if watch is None:
                self.say_once("unwatched", "log_gradients() measures nothing before watch(model, optimizer)")
                self._log.log_unwatched(loss, batch_size, lr, step)
            elif watch.has_logged_this_step():
                self.say_once(
                    "repeated",
                    "log_gradients() was called twice within one optimizer step: the second call is left out",
                )
            else:
                if self._watching.calibrator is not None:
                    self._watching.calibrator.log_step(batch_size)
                if self._stream.loss_reduction != "sum" and is_sum(loss) and self._stream.add_note(SUMMED):
                    self.say(SUMMED)
                    self._describe_again()
                self._log.log_watched(watch, loss=loss, batch_size=batch_size, lr=lr, step=step)

    def log_hessian(
        self,
        losses: "Sequence[Callable[[], torch.Tensor]]",
        sizes: Sequence[float] | None,
        curvature_loss: "Callable[[], torch.Tensor] | None",
        step: int | None,
    ) -> None:
        """Measure kind `hessian` now; see `Run.log_hessian`.

        Raises:
            ConfigError: Before `watch()`.
        """
        if self.watch is None:
            raise ConfigError("log_hessian() needs the model's parameters: call watch(model, optimizer) first")
        with self.lock:
            self.collect()  # the examples so far
            number = self._log.steps.number_now(step, self.watch.num_steps)
            logged = LoggedStep(number, self.now(), self.watch.learning_rate(), self._log.steps.num_examples)
            self._kinds.measure_hessian(self.watch, logged, losses, sizes, curvature_loss)

    def log_metrics(self, step: int | None, values: Mapping[str, float]) -> None:
        """Record numbers at a step; see `Run.log_metrics`."""
        numbers = {checked_metric_name(name): plain_number(value) for name, value in values.items()}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        with self.lock:
            number = self._log.steps.newest_step if step is None else checked_step(step)
            self.metrics.add(number, finite)
        self._send(MetricRecord(number, self.now(), finite))

    # ---- results

    def noise_scale(self, kind: str) -> NoiseScale:
        """The noise scale of the latest window; of a kind that is not measured it is unresolved."""
        with self.lock:
            return self._results.noise_scale(kind, self.description)

    def standing(self) -> Standing:
        """Where the run stands, with all that has arrived."""
        with self.lock:
            return self._log.standing(self.description.planned_steps, self.watch)

    def learning_rate(self) -> RateVerdict:
        """Whether the learning rate is too low, right or too high, by all steps so far."""
        with self.lock:
            asked = self._stream.optimizer, self.description.planned_steps
            return self._log.learning_rate(*asked, has_ended=self._has_ended)

    def measured(self) -> MeasuredRun:
        """What a recommendation is made from."""
        with self.lock:
            return self._results.measured(self.description, has_ended=self._has_ended)

    @property
    def has_logged(self) -> bool:
        """Whether a step was logged, measured or not."""
        return self._log.steps.next_step > 0

    @property
    def newest_step(self) -> int:
        """The last optimizer step that was logged."""
        return self._log.steps.newest_step

    def collect(self) -> None:
        """Record the steps whose values have arrived."""
        with self.lock:
            if self.watch is not None:
                self._log.collect(self.watch)
            self._kinds.collect()

    def finish(self, status: str, timeout_seconds: float) -> Whereabouts | None:
        """Deliver what is left, for at most so long.

        Returns:
            Where the records are now; None where this process has none to speak of.
        """
        assert self._outbox is not None
        if self._outbox.is_inherited:
            return None
        self._has_ended = True
        try:
            with self.lock:
                self.unwatch()
                self._log.flush()
                self._show(self._log.steps.newest_step, is_last=True)
        finally:
            self._kinds.close(FinishRecord(status, self.now()), timeout_seconds)
            self._send(FinishRecord(status, self.now()))
            where = self._outbox.close(timeout_seconds)
        return None if self._watching.is_silent else where

    # ---- in between

    def _on_norms(self, logged: LoggedStep, norms: "StepNorms", update: Update) -> None:
        """A measured step was recorded: its further kinds, what the stream says of itself, and the mirror."""
        self._kinds.see(update, norms)
        if self._watching.calibrator is not None:
            self._watching.calibrator.pair(logged.num_steps, update.terms)
        if self._stream.batch_size_source != self._log.batch_size_source:
            self._describe_again()
        self._show(logged.step)

    def _describe_again(self) -> None:
        """Say anew how the streams measure, where that has changed."""
        self._stream.batch_size_source = self._log.batch_size_source or self._stream.batch_size_source
        if self._stream.has_changed():
            self._send(self._run_record("simple"))
            self._kinds.describe_again()

    def _show(self, step: int, *, is_last: bool = False) -> None:
        """Say where the run stands, and mirror it."""
        if self._log.num_estimates >= self._outlook.next and not self._has_ended:
            self._outlook.look(self._log.num_estimates, lambda: self.noise_scale("simple"))
        if self._mirroring is not None and not self._watching.is_silent:
            self._mirroring.offer(step, lambda: self.noise_scale("simple"), is_last=is_last)

    def _send(self, record: Record) -> None:
        assert self._outbox is not None
        if not self._watching.is_silent:  # the first rank of a data-parallel job sends
            self._outbox.send(record)

    def now(self) -> float:
        """Unix seconds: the start by the wall clock, the rest by one that never jumps."""
        return self._clock_to_unix + time.monotonic()

    def _run_record(self, kind: str) -> RunRecord:
        self._stream.batch_size_source = self._log.batch_size_source or self._stream.batch_size_source
        return self._stream.record(kind, self.description, rank=self._config.rank, started_at=self._started_at)
