"""The sentences of a recommendation before a run's first step."""

from collections.abc import Sequence
from dataclasses import dataclass

from noisescale_core.advice.answer import Recommendation
from noisescale_core.advice.numbers import number
from noisescale_server.services.task_evidence import TaskEvidence, TaskSweep


@dataclass(frozen=True, slots=True)
class Words:
    """What to do, why, and what would make it surer."""

    headline: str
    reason: str
    next_step: str


def words(evidence: TaskEvidence, found: Recommendation, updates_needed: int | None) -> Words:
    """The sentences for what was found.

    Args:
        evidence: What is known of the task.
        found: The advice.
        updates_needed: Steps that would resolve one of the task's runs, where none is.
    """
    if evidence.critical_batch is None:
        return Words("Not enough evidence yet", _missing(evidence), _way_out(updates_needed))
    if found.recommended_batch_size is None:
        return Words(found.headline, found.reason, found.next_step)
    is_known = evidence.kappa.measurements or _fitted(evidence.sweeps)
    start = f"Start with {found.recommended_batch_size:,}"
    headline = start if is_known else f"{start}; not calibrated here"
    return Words(headline, _because(evidence), _AFTER if is_known else _calibrate(found))


_AFTER = "Watch the first steps of the run and ask for its own recommendation: its noise scale makes this surer."
_SWEEP = "Branch from the next run, or sweep this task: either ties the noise scale to a critical batch."


def _calibrate(found: Recommendation) -> str:
    """What would make it surer, with what a sweep costs where the earlier run tells."""
    sweep = next((one.text for one in found.next_steps if one.kind == "sweep"), None)
    return _SWEEP if sweep is None else f"{_SWEEP} {sweep}"


def effect(sweep: TaskSweep, steps: float, low: float, high: float) -> str:
    """What the sweep foretells at the recommended batch."""
    metric = sweep.sweep.metric or "training loss"
    target = "" if sweep.row.target is None else f" {sweep.row.target:g}"
    return f"The sweep foretells {number(steps)} steps [{number(low)}, {number(high)}] to {metric}{target}."


def _fitted(sweeps: Sequence[TaskSweep]) -> list[float]:
    return [one.row.critical_batch for one in sweeps if one.row.critical_batch is not None]


def _because(evidence: TaskEvidence) -> str:
    critical, example = evidence.critical_batch, evidence.example
    assert critical is not None
    measured, scale = _fitted(evidence.sweeps), evidence.noise_scale
    parts = []
    if measured:
        sizes = number(measured[0]) if len(measured) == 1 else f"{number(min(measured))} to {number(max(measured))}"
        parts.append(f"{_count(len(measured), 'sweep')} (critical batch {sizes})")
    if scale is not None:
        parts.append(f"{_count(scale.num_runs, 'run')} (noise scale {number(scale.value)})")
    ends = f"{number(critical.low)} – {number(critical.high)}"
    return f"From {' and '.join(parts)}: the critical batch is {number(critical.value)} {example}s, {ends}."


def _count(count: int, what: str) -> str:
    return f"{count} earlier {what}{'' if count == 1 else 's'}"


def _missing(evidence: TaskEvidence) -> str:
    by = f" with {evidence.optimizer}" if evidence.optimizer else ""
    refused = next((one.row.missing for one in evidence.sweeps if one.row.missing), None)
    said = f"No run of this task{by} has a resolved noise scale, and no sweep of it was fitted."
    return said if refused is None else f"{said} {refused}"


def _way_out(updates_needed: int | None) -> str:
    if updates_needed is not None:
        steps = f"about {updates_needed:,} steps in one window"
        return f"Let a run of the task measure {steps}: that resolves it, and costs nothing besides the training."
    return (
        "Train at any batch with watch() and 8 or more micro-batches a step: it costs no run of its own, and the "
        "advice of that run says after 8 steps how many more it takes. Or run a sweep: noisescale.sweep()."
    )
