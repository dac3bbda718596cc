"""Where a run's time goes by the shares that it has logged, what to do about it, and which techniques it uses."""

from dataclasses import dataclass
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncSession

from noisescale_server.analysis.cost.bottleneck import (
    METRIC_PREFIX,
    RECOMPUTED,
    SHARES,
    SQUARE_ROOT,
    BeyondMemory,
    Lever,
    beyond_memory,
    levers,
)
from noisescale_server.analysis.cost.growth import known_device
from noisescale_server.analysis.cost.techniques import Technique
from noisescale_server.services.cost.board_rows import techniques_of
from noisescale_server.services.platform.errors import RunNotFound
from noisescale_server.storage import cost
from noisescale_server.storage.runs import runs

NEWEST = 100
"""Values of each share that are averaged: what the run does now."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What a device holds, and what a larger batch costs in time.

    Attributes:
        device: Kind; None where it is not in the table of data sheets.
        memory_gb: Of one device; None likewise.
        micro_batch: Examples that a device holds in the run, as logged: it holds at least these.
        overhead_seconds: α of a pass, where the reader said it.
        beyond: The batch asked for; None where nobody asked.
        said: What is assumed.
    """

    device: str | None
    memory_gb: float | None
    micro_batch: float | None
    beyond: BeyondMemory | None
    said: str


@dataclass(frozen=True, slots=True)
class TimeOfRun:
    """The whole answer.

    Attributes:
        shares: Of the wall time of a step, by part; those that the run has logged.
        missing: Names of metrics to log.
        unexplained: 1 minus the shares; None where none is logged.
        levers: The cheapest first.
        techniques: The checklist.
        memory: The ceiling on a device's batch.
    """

    shares: dict[str, float]
    missing: tuple[str, ...]
    unexplained: float | None
    levers: tuple[Lever, ...]
    techniques: tuple[Technique, ...]
    memory: Memory


@dataclass(frozen=True, slots=True)
class LargerBatch:
    """A batch per device that is asked about.

    Attributes:
        examples: Of one device in a step.
        overhead_seconds: α of one pass.
        seconds_per_example: β.
    """

    examples: float
    overhead_seconds: float
    seconds_per_example: float


async def of_run(session: AsyncSession, run_id: UUID, larger: LargerBatch | None) -> TimeOfRun:
    """Where the time of a run goes.

    Raises:
        RunNotFound: When no run has this id.
    """
    run = await runs.get(session, run_id)
    if run is None:
        raise RunNotFound(run_id)
    names = {METRIC_PREFIX + name: name for name in SHARES}
    means = await cost.mean_of_newest(session, run_id, list(names), NEWEST)
    shares = {names[name]: value for name, value in means.items() if 0 <= value <= 1}
    logged = (await cost.logged(session, [run_id]))[run_id]
    device = known_device(run.device)
    micro_batch = _micro_batch(run.latest_global_batch, run.latest_num_micro_batches)
    return TimeOfRun(
        shares=shares,
        missing=tuple(name for name, part in names.items() if part not in shares),
        unexplained=max(0.0, 1 - sum(shares.values())) if shares else None,
        levers=levers(shares),
        techniques=techniques_of(logged),
        memory=Memory(
            device=device.device if device else None,
            memory_gb=device.memory_gb if device else None,
            micro_batch=micro_batch,
            beyond=_beyond(larger, micro_batch),
            said=f"Checkpointing computes {RECOMPUTED:.0%} more in a pass, and {SQUARE_ROOT}; accumulation pays the "
            "overhead of a pass once a micro-batch.",
        ),
    )


def _micro_batch(global_batch: float | None, num_micro_batches: int | None) -> float | None:
    """Examples of one backward pass: the global batch by the small batches that it was gathered from."""
    return global_batch / num_micro_batches if global_batch and num_micro_batches else None


def _beyond(larger: LargerBatch | None, micro_batch: float | None) -> BeyondMemory | None:
    if larger is None or micro_batch is None:
        return None
    return beyond_memory(
        larger.examples,
        micro_batch,
        overhead_seconds=larger.overhead_seconds,
        seconds_per_example=larger.seconds_per_example,
    )
