"""Kind `hessian` of a run: measured when the script says so, in a series of its own."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from noisescale import capture
from noisescale.rows.updates import LoggedStep, Update, update_from_terms
from noisescale.track.kind_series import KindSeries
from noisescale_core.estimators.noise_scale import Terms

if TYPE_CHECKING:
    import torch

    from noisescale.capture.sums.device_values import DeviceValues
    from noisescale.capture.watch import Watch


class HessianLog:
    """Hands Hessian-vector products over to their series when their numbers have arrived."""

    def __init__(self, series: KindSeries) -> None:
        self._series = series
        self._values: DeviceValues[Callable[[Terms], Update]] = capture.DeviceValues()

    def measure(
        self,
        watch: "Watch[LoggedStep]",
        logged: LoggedStep,
        losses: "Sequence[Callable[[], torch.Tensor]]",
        sizes: Sequence[float] | None,
        curvature_loss: "Callable[[], torch.Tensor] | None",
    ) -> None:
        """Compute the terms; arguments as in `Run.log_hessian`."""
        of_each = [1.0] * len(losses) if sizes is None else [float(size) for size in sizes]
        with watch.unhooked():
            values = capture.hessian_values(
                watch.parameters, losses, curvature_loss, sizes=of_each, buffers=list(watch.model.buffers())
            )
        self._values.send(
            lambda terms: update_from_terms(
                logged,
                terms,
                num_small=len(of_each),
                batch_size=sum(of_each),
                loss=None,
            ),
            values,
        )
        self.collect()

    def collect(self) -> None:
        """Record what has arrived; never waits."""
        self._record(self._values.arrived())

    def drain(self) -> None:
        """Record all; waits for the device."""
        self._record(self._values.drain())

    def _record(self, arrived: Sequence[tuple[Callable[[Terms], Update], list[float]]]) -> None:
        for make_update, (trace, curvature) in arrived:
            update = make_update(Terms(trace_cov=trace, grad_sq_norm=curvature))
            self._series.add(update, update.terms)
