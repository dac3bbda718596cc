"""The sentences of a recommendation before a run's first step."""

from noisescale_core.advice.evidence.evidence import Prior, Swept
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.parts.parts import Interval

AFTER = "Watch the first steps of the run and ask for its own recommendation: its noise scale makes this surer."
SWEEP = "Branch from the next run, or sweep this task: either ties the noise scale to a critical batch."


def headline(evidence: Swept, to_batch: int) -> str:
    """What to begin with, in a few words."""
    start = f"Start with {to_batch:,}"
    return start if evidence.num_measurements else f"{start}; not calibrated here"


def because(evidence: Swept, example: str) -> str:
    """Where the critical batch comes from."""
    critical, measured, parts = evidence.swept, evidence.sweeps, []
    if measured:
        sizes = number(measured[0]) if len(measured) == 1 else f"{number(min(measured))} to {number(max(measured))}"
        parts.append(f"{_count(len(measured), 'sweep')} (critical batch {sizes})")
    if evidence.noise_scale is not None and evidence.noise_scale.value is not None:
        parts.append(f"{_count(evidence.num_runs, 'run')} (noise scale {number(evidence.noise_scale.value)})")
    ends = f"{number(critical.low)} – {number(critical.high)}"
    return f"From {' and '.join(parts)}: the critical batch is {number(critical.value)} {example}s, {ends}."


def effect(evidence: Swept, to_batch: float) -> str | None:
    """What the newest sweep predicts at the batch; None outside its batch sizes."""
    steps = None if evidence.curve is None else evidence.curve.steps(to_batch)
    if evidence.curve is None or steps is None:
        return None
    target = "" if evidence.curve.target is None else f" {evidence.curve.target:g}"
    metric = evidence.curve.metric or "training loss"
    return f"The sweep predicts {_steps(steps)} to {metric}{target}."


def next_step(evidence: Swept, what_a_sweep_costs: str | None) -> str:
    """What would make it surer."""
    if evidence.num_measurements:
        return AFTER
    return SWEEP if what_a_sweep_costs is None else f"{SWEEP} {what_a_sweep_costs}"


NO_SETTING = "The critical batch is known, but no earlier run of this task tells which batch and learning rate it had."
LOG_ONE = "Log one run of the task with batch_size= and its learning rate."


def missing(evidence: Prior) -> str:
    """What there is not."""
    by = f" with {evidence.optimizer}" if evidence.optimizer else ""
    said = f"No run of this task{by} has a resolved noise scale, and no sweep of it was fitted."
    return said if evidence.refused is None else f"{said} {evidence.refused}"


def way_out(evidence: Prior) -> str:
    """How a task gets its first critical batch."""
    if evidence.updates_needed is not None:
        steps = f"about {evidence.updates_needed:,} steps in one window"
        return f"Let a run of the task measure {steps}: that resolves it, and costs nothing besides the training."
    return (
        "Train at any batch with watch() and 8 or more micro-batches a step: it costs no run of its own, and the "
        "advice of that run says after 8 steps how many more it takes. Or run a sweep: noisescale.sweep()."
    )


def _steps(found: Interval) -> str:
    return f"{number(found.value)} steps [{number(found.low)}, {number(found.high)}]"


def _count(count: int, what: str) -> str:
    return f"{count} earlier {what}{'' if count == 1 else 's'}"
