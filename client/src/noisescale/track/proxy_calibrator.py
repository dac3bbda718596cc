"""Calibrates the proxy of the normalisations inside a run: now and then the whole model is measured beside it."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from noisescale import capture
from noisescale.rows.updates import LoggedStep, update_from_norms
from noisescale_core.estimators.noise_scale import Terms

if TYPE_CHECKING:
    import torch

    from noisescale.capture.per_example.proxy_calibration import ProxySums
    from noisescale.capture.watch import Watch
    from noisescale.capture.watch_options import WatchOptions

CALIBRATE_EVERY = 10
"""Measured steps from one at which the whole model is measured, too, to the next."""

MAX_IN_VAIN = 5
"""Such steps without an estimate of the whole model, one backward each, after which none is tried again."""

NOTE = "whole model / proxy = "


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
