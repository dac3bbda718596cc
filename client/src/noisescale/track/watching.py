"""What measures the gradients of one recorder, from its start to its end, and what the stream says of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from noisescale import capture
from noisescale.guard import Faults, Notices
from noisescale.notices.explanations import explain_duty
from noisescale.rows.updates import LoggedStep, update_from_norms
from noisescale.track.stream_description import StreamDescription
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.noise_scale import Terms

if TYPE_CHECKING:
    import torch

    from noisescale.capture.duty_cycle import DutyCycle
    from noisescale.capture.per_example.proxy_calibration import ProxySums
    from noisescale.capture.watch import Watch
    from noisescale.capture.watch_options import WatchOptions
    from noisescale.track.further_kinds import FurtherKinds
    from noisescale.track.step_log import StepLog

CALIBRATE_EVERY = 10
"""Measured steps from one at which the whole model is measured, too, to the next."""

MAX_IN_VAIN = 5
"""Such steps without an estimate of the whole model, one backward each, after which none is tried again."""

NOTE = "whole model / proxy = "


# Calibrates the proxy of the normalisations inside a run: now and then the whole model is measured beside it.


class ProxyCalibrator:
    """Pairs the proxy's terms with those of the whole model from the micro-batches of the same steps.

    Args:
        whole: Measures the whole model by micro-batches, every tenth of the proxy's steps.
        on_note: Told what is known of the ratio, whenever there are twice as many steps.
    """

    def __init__(self, whole: "Watch[int]", on_note: Callable[[str], None]) -> None:
        self.whole = whole
        self._on_note = on_note
        self._waiting: dict[int, Terms] = {}
        self._sums: ProxySums = capture.ProxySums()
        self._next_note = 8
        self._num_in_vain = 0

    def log_step(self, batch_size: float | None) -> None:
        """The step is over; measure the whole model where it is its turn."""
        if self._num_in_vain >= MAX_IN_VAIN:
            return
        if self.whole.is_measured:
            self.whole.log_step(self.whole.num_steps, batch_size=batch_size, loss=None)
        else:
            self.whole.skip_step()

    def pair(self, num_steps: int, proxy: Terms | None) -> None:
        """Take the proxy's terms of a step in, and the whole model's that have arrived.

        Args:
            num_steps: Number of the step since both began.
            proxy: Its terms; None where there is no estimate.
        """
        if proxy is not None and num_steps % self.whole.duty.every == 0:
            self._waiting[num_steps] = proxy
        self.whole.sent.hurry()
        for number, norms in self.whole.sent.arrived():
            whole = update_from_norms(LoggedStep(0, 0.0), norms).terms
            of_proxy = self._waiting.pop(number, None)
            self._num_in_vain = 0 if whole is not None else self._num_in_vain + 1
            if whole is not None and of_proxy is not None:
                self._sums = self._sums + capture.ProxySums.from_pair(proxy=of_proxy, full=whole)
                self._note()
        if self._num_in_vain >= MAX_IN_VAIN:
            self.close()

    def _note(self) -> None:
        if self._sums.num_pairs < self._next_note:
            return
        self._next_note *= 2
        found = capture.calibrate(self._sums)
        if found.ratio is not None:
            self._on_note(
                f"{NOTE}{found.ratio:.3g} [{found.low:.3g}, {found.high:.3g}], from {found.num_pairs} steps with both"
            )

    def close(self) -> None:
        """Take every hook off."""
        self.whole.close()


def calibrator_beside(
    watch: "Watch[LoggedStep]",
    optimizer: "torch.optim.Optimizer | None",
    options: "WatchOptions",
    on_fault: Callable[[Exception], None],
    on_note: Callable[[str], None],
) -> ProxyCalibrator | None:
    """What calibrates a watch of the normalisations; None of another, and with a budget, which has no time for it."""
    if options.small_batches != "layer_norm_proxy" or options.overhead is not None or watch.job.num_ranks > 1:
        return None
    whole = replace(
        options,
        small_batches="micro_batches",
        fused_norm_layers=False,
        every=CALIBRATE_EVERY * options.every,
        groups="none",
        judge_rate=False,
    )
    return ProxyCalibrator(
        capture.Watch(watch.model, optimizer, whole, on_fault=on_fault, on_duty=lambda _: None, on_source=lambda: None),
        on_note,
    )


class Watching:
    """At most one watch at a time.

    Args:
        log: Takes the steps of the watch.
        kinds: Take those of further kinds.
        stream: Says how it measures.
        notices: Says sentences.
        faults: Told about our own errors.
        describe_again: Sends what the stream says, where that has changed.

    Attributes:
        watch: What measures the gradients; None before it is started.
        calibrator: Measures the whole model beside a proxy; None where there is none.
        is_silent: Another rank of the job sends.
    """

    def __init__(
        self,
        log: "StepLog",
        kinds: "FurtherKinds",
        stream: StreamDescription,
        notices: Notices,
        faults: Faults,
        describe_again: Callable[[], None],
    ) -> None:
        self.watch: Watch[LoggedStep] | None = None
        self.calibrator: ProxyCalibrator | None = None
        self.is_silent = False
        self._log = log
        self._kinds = kinds
        self._stream = stream
        self._notices = notices
        self._faults = faults
        self._describe_again = describe_again
        self._first_step = 0

    def start(
        self,
        model: "torch.nn.Module",
        optimizer: "torch.optim.Optimizer | None",
        options: "WatchOptions",
        log_every: int,
    ) -> None:
        """Measure a model from the next backward on.

        Raises:
            ConfigError: For what cannot be watched.
        """
        if log_every < 1:
            raise ConfigError(f"log_every must be at least 1 update, got {log_every}")
        before, is_further = self.watch, self.has_logged
        watch: Watch[LoggedStep] = capture.Watch(
            model, optimizer, options, on_fault=self._faults.report, on_duty=self._on_duty, on_source=self._on_source
        )
        if before is not None:
            self.end()
        if before is not None and is_further and before.model is not model:
            self._log.forget()
            self._notices.say(
                f"measuring another {type(model).__name__} from here on: the steps go on in the same run, what is "
                "known of the noise scale begins anew; noisescale.init() begins a run of its own"
            )
        self.watch = watch
        self.is_silent = self._notices.is_muted = not watch.job.is_first
        self._first_step = self._log.steps.next_step
        self.calibrator = calibrator_beside(watch, optimizer, options, self._faults.report, self._on_calibration)
        self._log.start_watch(watch.group_names, log_every)
        for kind in watch.kind_names:
            self._kinds.open(kind, log_every)
        self._stream.start_watch(watch, options)
        self._notices.say(f"measuring {type(model).__name__} {watch.says}")
        self._note(watch)

    def end(self) -> None:
        """Take every hook off the model and its optimizer, and record what was on its way."""
        if self.watch is not None:
            watch, self.watch = self.watch, None
            watch.close()
            self._log.drain(watch)
            if self.calibrator is not None:
                self.calibrator.close()
                self.calibrator = None
            self._kinds.drain()

    @property
    def has_logged(self) -> bool:
        """Whether steps were logged since the model is watched."""
        return self.watch is not None and self._log.steps.next_step > self._first_step

    def watches(self) -> "list[Watch[Any]]":
        """All that see the model's backward passes."""
        found: list[Watch[Any]] = [] if self.watch is None else [self.watch]
        return found if self.calibrator is None else [*found, self.calibrator.whole]

    def _on_duty(self, duty: "DutyCycle") -> None:
        """A budget has fixed how often steps are measured."""
        self._stream.measure_every = duty.every
        explain_duty(duty, self._notices)
        self._describe_again()

    def _on_source(self) -> None:
        """The small batches come from somewhere else from now on."""
        watch = self.watch
        assert watch is not None
        self._log.collect(watch)
        self._log.change_groups(watch.group_names)
        if watch.estimator != self._stream.estimator:
            self._notices.say(f"measuring {watch.says}")
        self._stream.estimator = watch.estimator
        self._note(watch)
        self._describe_again()

    def _on_calibration(self, note: str) -> None:
        """The proxy's ratio to the whole model is known better."""
        self._stream.renew_note(NOTE, note)
        self._describe_again()

    def _note(self, watch: "Watch[LoggedStep]") -> None:
        """Say and record the facts that are new about a measurement."""
        self._stream.covered = watch.covered_share
        for note in watch.notes:
            if self._stream.add_note(note):
                self._notices.say(note)
