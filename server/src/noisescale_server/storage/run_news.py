"""What a batch changes in the run's row, so that lists and sorting need no measurements."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, update
from sqlalchemy.ext.asyncio import AsyncSession

from noisescale.estimators.uncertainty import NoiseScaleEstimate
from noisescale_server.storage.tables import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNews:
    """Columns of `run` by name; what is None stays as it is.

    Attributes:
        is_resumed: A stream newer than all others begins: what an older one said about finishing is over.
    """

    is_resumed: bool = False
    first_step: int | None = None
    optimizer: str | None = None
    estimator: str | None = None
    loss_reduction: str | None = None
    latest_step: int | None = None
    latest_examples: int | None = None
    latest_loss: float | None = None
    latest_lr: float | None = None
    latest_global_batch: float | None = None
    latest_num_micro_batches: int | None = None
    latest_flags: int | None = None
    finished_at: datetime | None = None
    finish_status: str | None = None


_PLAIN = tuple(name for name in RunNews.__slots__ if name not in {"is_resumed", "first_step"})


async def store(
    session: AsyncSession,
    run_id: UUID,
    news: RunNews,
    *,
    noise_scale: NoiseScaleEstimate | None,
) -> None:
    """Nothing; the run shows the news, and the estimate if one was made."""
    values: dict[str, Any] = {"updated_at": func.clock_timestamp()}
    if news.is_resumed:
        values |= {"finished_at": None, "finish_status": None}
    if news.first_step is not None:
        # another stream of the run may have committed a smaller one meanwhile
        values["first_step"] = func.least(Run.first_step, news.first_step)
    values |= {name: value for name in _PLAIN if (value := getattr(news, name)) is not None}
    if noise_scale is not None:
        values |= _of_estimate(noise_scale, news.latest_global_batch)
    await session.execute(update(Run).where(Run.id == run_id).values(values))


def _of_estimate(estimate: NoiseScaleEstimate, batch_size: float | None) -> dict[str, Any]:
    batch = Run.latest_global_batch if batch_size is None else batch_size
    return {
        "example_efficiency": None if estimate.value is None else estimate.value / (batch + estimate.value),
        "latest_refreshed_at": func.clock_timestamp(),
        "noise_scale_state": estimate.state.value,
        "noise_scale_value": estimate.value,
        "noise_scale_low": estimate.low,
        "noise_scale_high": estimate.high,
        "noise_scale_z": estimate.z,
        "noise_scale_reason": None if estimate.reason is None else estimate.reason.value,
        "noise_scale_updates_needed": estimate.updates_needed,
        "noise_scale_num_updates": estimate.num_updates,
        "noise_scale_num_blocks": estimate.num_blocks,
    }
