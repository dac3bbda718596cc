"""A stored run as advice takes it: what its row says, without its measurements."""

from noisescale_core.advice.parts.flags import reason_without_estimate
from noisescale_core.advice.parts.parts import RunSoFar
from noisescale_core.estimators.divergence import divergence
from noisescale_core.estimators.uncertainty import NoiseScaleEstimate, Reason, State
from noisescale_server.storage.platform.tables import Run

REASONS = {reason.value: reason for reason in Reason}

LEVEL = 0.95
"""Confidence level of the estimates kept with a run."""


def run_so_far(run: Run) -> RunSoFar:
    """What the decision is made from."""
    scale = latest_estimate(run)
    return RunSoFar(
        noise_scale=scale,
        batch_size=run.latest_global_batch,
        optimizer=run.optimizer,
        learning_rate=run.latest_lr,
        example=run.example or "example",
        unit=run.unit,
        family=run.family,
        reason=reason_of(run, scale),
        flags=run.noise_scale_flags,
        units_per_example=run.units_per_example,
        steps_done=0 if run.latest_step is None else run.latest_step + 1,
        planned_steps=run.planned_steps,
        num_devices=run.num_devices,
        usd_per_device_hour=run.usd_per_device_hour,
        config=run.config,
        run_id=str(run.id),
        noise_scale_step=run.noise_scale_step,
        divergence=divergence(run.loss_broken_since, run.gradients_broken_since, run.latest_step),
        has_ended=run.finish_status is not None,
    )


def reason_of(run: Run, scale: NoiseScaleEstimate) -> str | None:
    """Why there is no value: the flags of the rows say more than that there are no estimates."""
    if scale.reason is Reason.NO_ESTIMATES:
        return reason_of_rows(run) or scale.reason
    return scale.reason


def reason_of_rows(run: Run) -> str | None:
    """Why the newest rows hold no estimate; a duty cycle's last row may not be one that was measured."""
    return reason_without_estimate(run.latest_flags) or reason_without_estimate(run.noise_scale_flags)


def latest_estimate(run: Run) -> NoiseScaleEstimate:
    """The estimate over the latest window as it was kept with the run."""
    state = State(run.noise_scale_state or State.UNRESOLVED)
    missing = REASONS.get(run.noise_scale_reason or "", Reason.NO_ESTIMATES)
    return NoiseScaleEstimate(
        state=state,
        value=run.noise_scale_value,
        low=run.noise_scale_low,
        high=run.noise_scale_high,
        level=LEVEL,
        z=run.noise_scale_z,
        reason=missing if state is State.UNRESOLVED else None,
        updates_needed=run.noise_scale_updates_needed,
        num_updates=run.noise_scale_num_updates or 0,
        num_blocks=run.noise_scale_num_blocks or 0,
        trace_cov=None,
        trace_cov_se=None,
        grad_sq_norm=None,
        grad_sq_norm_se=None,
    )
