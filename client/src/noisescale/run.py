"""Run, the one object a training loop touches: capture -> estimators -> transport."""

import atexit
import contextlib
import math
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from noisescale import capture
from noisescale.config import Config
from noisescale.description import RunDescription, checked_metric_name
from noisescale.errors import ConfigError
from noisescale.explanations import explain_gradient, explain_sizes
from noisescale.guard import Faults, Notices, logger, never_raises
from noisescale.outbox import Outbox
from noisescale.recent_updates import NoiseScale, RecentUpdates
from noisescale.recording import Recording
from noisescale.step_counter import StepCounter, checked_size, checked_step
from noisescale.transport.wire import FinishRecord, MetricRecord, Record, RunRecord
from noisescale.updates import (
    LoggedStep,
    Update,
    plain_number,
    update_from_norms,
    update_from_two_batches,
    update_without_norms,
)
from noisescale.version import __version__

if TYPE_CHECKING:
    import torch

    from noisescale.capture.parameter_groups import Grouping
    from noisescale.capture.step_norms import StepNorms
    from noisescale.capture.watch import LossReduction, Watch

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

    Args:
        config: Settings of the client.
        description: What the run is called and made of.
        outbox: Takes the records; None: made from the settings, unless the mode is "disabled".
    """

    def __init__(self, config: Config, description: RunDescription, outbox: Outbox | None = None) -> None:
        self.id = config.run_id or str(uuid.uuid4())
        self.config = config
        self.faults = Faults(is_strict=config.strict)
        self._notices = Notices()
        self._description = description
        self._started_at = time.time()
        self._started_clock = time.monotonic()
        self.is_finished = False
        self._watch: Watch[LoggedStep] | None = None
        self._estimator: Literal["micro_batches", "norms", "none"] = "none"
        self._loss_reduction = "mean_over_examples"
        self._optimizer_name: str | None = None
        self._batch_size_source: str | None = None
        self._recent = RecentUpdates()
        self._recording = self._new_recording([], config.log_every)
        self._steps = StepCounter()
        self._outbox = outbox
        if outbox is None and config.mode == "online":
            self._outbox = Outbox(self.id, config, self._run_record, self.faults.report)
        if self._outbox is not None:
            _open_runs.add(self)

    @property
    def is_recording(self) -> bool:
        """False when the mode is "disabled" or the run is finished."""
        return self._outbox is not None and not self.is_finished

    def leave_out(self, call: str) -> None:
        """Say once that a finished run records nothing more."""
        if self.is_finished and call.startswith("log_"):
            self._notices.once("finished", f"{call}() after finish() is left out: noisescale.init() begins a new run")

    def __repr__(self) -> str:
        return f"<noisescale.Run {self._description.project}/{self._description.task} {self.id}>"

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
    ) -> None:
        """Measure the gradients of this model from the next backward on.

        Args:
            model: Parameters that require a gradient now are measured.
            optimizer: Its `step()` ends an optimizer step, and what it does not hold is not measured; without one
                `log_gradients()` ends the step.
            loss_reduction: How the loss that backward starts from is reduced over the examples of a step.
            groups: "layer", "none", or a function from parameter name to the name of its group.
            log_every: Updates per row sent; None: as in the settings.

        Raises:
            ConfigError: For wrong arguments, or while another optimizer is watched.
        """
        if not self.is_recording:
            return
        if self._watch is not None:
            raise ConfigError("one optimizer per run for now: call unwatch() before watching another")
        if log_every is not None and log_every < 1:
            raise ConfigError(f"log_every must be at least 1 update, got {log_every}")
        self._watch = capture.Watch(
            model, optimizer, loss_reduction=loss_reduction, groups=groups, on_fault=self.faults.report
        )
        self._estimator = "micro_batches"
        self._loss_reduction = loss_reduction
        self._optimizer_name = self._watch.optimizer_name
        self._steps.start_watch()
        self._description = replace(self._description, device=self._description.device or self._watch.device_name)
        self._recording.flush()
        self._recording = self._new_recording(self._watch.group_names, log_every or self.config.log_every)
        logger.info("watching %s: squared norms of micro-batches, before accumulation", type(model).__name__)

    @never_raises
    def unwatch(self) -> None:
        """Take every hook off the model and its optimizer."""
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch.close()
            self._record(watch.drain())

    @contextlib.contextmanager
    def micro_batch(self, num_examples: float | None = None) -> Iterator[None]:
        """All backward passes inside count as one small batch.

        Args:
            num_examples: Its size, where sizes differ; counted units such as unmasked tokens are fine, they are taken
                as shares of the `batch_size` that is logged. None: read from the model's input.
        """
        self._begin_micro_batch(num_examples)
        try:
            yield
        finally:
            self._end_micro_batch(num_examples)

    @never_raises
    def _begin_micro_batch(self, num_examples: float | None) -> None:
        if num_examples is not None:
            checked_size("num_examples", num_examples, may_be_zero=True)
        if self._watch is not None:
            self._watch.begin_micro_batch()

    @never_raises
    def _end_micro_batch(self, num_examples: float | None) -> None:
        if self._watch is not None:
            self._watch.end_micro_batch(num_examples)

    @contextlib.contextmanager
    def ignore(self) -> Iterator[None]:
        """Backward passes inside are left out, from the small batches and from the step's gradient alike.

        Gradients that you clear again count as left out only when cleared with `set_to_none=True`, PyTorch's default.
        """
        self._ignore(True)
        try:
            yield
        finally:
            self._ignore(False)

    @never_raises
    def _ignore(self, is_ignoring: bool) -> None:
        if self._watch is not None:
            self._watch.ignore(is_ignoring)

    # ---- logging

    @never_raises
    def log_gradients(
        self,
        loss: "torch.Tensor | float | None" = None,
        batch_size: float | None = None,
        lr: float | None = None,
        step: int | None = None,
    ) -> None:
        """Record this optimizer step: after the last backward, before clipping and `optimizer.step()`.

        A second call before the next `optimizer.step()` is left out, unless the gradients were cleared in between. A
        call after `optimizer.step()` finds no backward and records no estimate. Steps that are not logged are fine.
        With a `GradScaler` call it before `scaler.unscale_(optimizer)`, too.

        Args:
            loss: Of the step; one number, also on the device, where it is read later.
            batch_size: Global batch in examples; None: the leading dimension of the model's first tensor argument,
                summed over the step.
            lr: None: of the optimizer's first parameter group.
            step: Number of the optimizer step; None: counted.
        """
        watch = self._watch
        if watch is None:
            self._notices.once("unwatched", "log_gradients() measures nothing before watch(model, optimizer)")
            self._add_unwatched(self._logged_step(step, lr), loss, batch_size)
            return
        if watch.has_logged_this_step():
            self._notices.once(
                "repeated", "log_gradients() was called twice within one optimizer step: the second call is left out"
            )
            return
        size = None if batch_size is None else checked_size("batch_size", batch_size)
        sizes = watch.sizes(size)
        logged = LoggedStep(
            self._steps.number_watched(step, watch.num_steps),
            self._now(),
            watch.learning_rate() if lr is None else float(lr),
            self._steps.count_watched(sizes.batch_size, watch.num_steps),
        )
        watch.log_step(logged, sizes, loss=loss)
        self._batch_size_source = self._batch_size_source or sizes.source
        explain_sizes(sizes, self._notices)
        self._record(watch.arrived())

    @never_raises
    def log_norms(
        self,
        *,
        small_batch_size: float,
        big_batch_size: float,
        small_sq_norm: float,
        big_sq_norm: float,
        num_small: int | None = None,
        step: int | None = None,
        loss: float | None = None,
        lr: float | None = None,
    ) -> None:
        """Record a step whose squared gradient norms you measured, in any framework.

        Args:
            small_batch_size: Examples per small batch.
            big_batch_size: Examples of the step.
            small_sq_norm: Mean of |G_B|² over the small batches (mean of squares, not square of a mean).
            big_sq_norm: |G_B|² of the whole batch's mean gradient, before clipping.
            num_small: Small batches in the step; None: big_batch_size / small_batch_size.
            step: Number of the optimizer step; None: counted.
            loss: Of the step.
            lr: Learning rate.
        """
        if self._estimator == "none":
            self._estimator = "norms"
            self._batch_size_source = "argument"
        big = checked_size("big_batch_size", big_batch_size)
        logged = replace(self._logged_step(step, lr), examples=self._steps.count(big))
        self._add(
            update_from_two_batches(
                logged,
                small_batch_size=checked_size("small_batch_size", small_batch_size),
                big_batch_size=big,
                small_sq_norm=plain_number(small_sq_norm),
                big_sq_norm=plain_number(big_sq_norm),
                num_small=num_small,
                loss=None if loss is None else plain_number(loss),
            )
        )

    @never_raises
    def log_metrics(self, /, step: int | None = None, **values: float) -> None:
        """Record evaluation loss, accuracy, score or whatever else belongs to a step.

        Args:
            step: Number of the optimizer step; None: the newest.
            values: Numbers by name; one that is not finite is kept as "none". A tensor on a device is waited for.
        """
        if values:
            number = self._steps.newest_step if step is None else checked_step(step)
            numbers = {checked_metric_name(name): plain_number(value) for name, value in values.items()}
            finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
            self._send(MetricRecord(number, self._now(), finite))

    # ---- results

    def noise_scale(self) -> NoiseScale:
        """The noise scale of the latest window: last 5 % of the steps, at least 8; print it."""
        self._collect()
        described = self._description
        return NoiseScale(
            self._recent.estimate(),
            self._recent.num_updates,
            described.example,
            described.unit,
            described.units_per_example,
        )

    @never_raises
    def _collect(self) -> None:
        if self._watch is not None:
            self._record(self._watch.arrived())

    def finish(
        self, status: Literal["finished", "failed"] = "finished", timeout_seconds: float = FINISH_SECONDS
    ) -> None:
        """Deliver what is left, for at most so long; the run takes nothing more.

        Where no server was ever reached it does not wait.

        Args:
            status: How the training ended.
            timeout_seconds: Longest wait.
        """
        self._finish(status, timeout_seconds)
        self.is_finished = True
        _open_runs.discard(self)

    @never_raises
    def _finish(self, status: str, timeout_seconds: float) -> None:
        assert self._outbox is not None
        if self._outbox.is_inherited:
            return
        self.unwatch()
        self._recording.flush()
        self._send(FinishRecord(status, self._now()))
        self._outbox.close(timeout_seconds)

    # ---- in between

    def _logged_step(self, step: int | None, lr: float | None) -> LoggedStep:
        return LoggedStep(self._steps.number(step), self._now(), None if lr is None else float(lr))

    def _add_unwatched(self, logged: LoggedStep, loss: "torch.Tensor | float | None", batch_size: float | None) -> None:
        size = None if batch_size is None else checked_size("batch_size", batch_size)
        logged = logged if size is None else replace(logged, examples=self._steps.count(size))
        self._add(update_without_norms(logged, size, None if loss is None else plain_number(loss)))

    def _record(self, arrived: "list[tuple[LoggedStep, StepNorms]]") -> None:
        for logged, norms in arrived:
            update = update_from_norms(logged, norms)
            explain_gradient(update, self._notices)
            self._add(update)

    def _add(self, update: Update) -> None:
        if update.terms is not None:
            self._recent.add(update.terms)
        self._recording.add(update)

    def _send(self, record: Record) -> None:
        assert self._outbox is not None
        self._outbox.send(record)

    def _now(self) -> float:
        # The start by the wall clock, the rest by one that never jumps.
        return self._started_at + (time.monotonic() - self._started_clock)

    def _new_recording(self, group_names: list[str], log_every: int) -> Recording:
        return Recording(
            self._send,
            log_every=log_every,
            group_seconds=self.config.group_seconds,
            group_names=group_names,
            start_time=self._now(),
        )

    def _run_record(self) -> RunRecord:
        stream: dict[str, object] = {
            "estimator": self._estimator,
            "kind": "simple",
            "unit": self._description.unit,
            "units_per_example": float(self._description.units_per_example),
            "loss_reduction": self._loss_reduction,
            "optimizer": self._optimizer_name,
            "batch_size_source": self._batch_size_source,
            "rank": self.config.rank,
            "host": socket.gethostname() or None,
            "client_version": __version__,
            "started_at": self._started_at,
        }
        return RunRecord(self._description.to_json(), stream)


_open_runs: set[Run] = set()


def _finish_open_runs() -> None:
    """At exit: a training that ended with an error has left it in `sys.last_value`."""
    for run in list(_open_runs):
        run.finish("failed" if getattr(sys, "last_value", None) is not None else "finished")


atexit.register(_finish_open_runs)
