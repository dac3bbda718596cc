"""What measures the gradients of one recorder, from its start to its end, and what the stream says of it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noisescale import capture
from noisescale.guard import Faults, Notices
from noisescale.notices.explanations import explain_duty
from noisescale.rows.updates import LoggedStep
from noisescale.track.further_kinds import FurtherKinds
from noisescale.track.proxy_calibrator import NOTE, ProxyCalibrator, calibrator_beside
from noisescale.track.step_log import StepLog
from noisescale.track.stream_description import StreamDescription
from noisescale_core.errors import ConfigError

if TYPE_CHECKING:
    import torch

    from noisescale.capture.duty_cycle import DutyCycle
    from noisescale.capture.watch import Watch
    from noisescale.capture.watch_options import WatchOptions


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
        log: StepLog,
        kinds: FurtherKinds,
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
