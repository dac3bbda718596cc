"""Sentences that the pages and the figures' descriptions say, made from the answers."""

from collections.abc import Sequence

from noisescale_dashboard.answers.common import Estimate, Run
from noisescale_dashboard.answers.series import Event, Metric, NoiseScaleSeries, ShortSeries, Stream
from noisescale_dashboard.words.decisions import CHANGES, LIKELY, UNDECIDED
from noisescale_dashboard.words.number_format import count, duration, share, si, significant, span

SHORT_NOUNS = {
    "sequences": "seq",
    "images": "img",
    "examples": "ex",
    "observations": "obs",
    "utterances": "utt",
    "characters": "char",
}
STATUS_WORDS = {
    "running": "running",
    "finished": "finished",
    "failed": "failed",
    "silent": "silent, no data for a minute",
    "crashed": "crashed, no data for ten minutes",
    "diverged": "diverged",
}
SMALL_BATCHES = {
    "ranks": "{ranks}",
    "per_example": "the gradients' norms of single examples",
    "layer_norm_proxy": "the norm layers alone",
    "split": "{parts} parts of each batch",
    "norms": "norms that the script logged",
    "nested_groups": "nested groups",
}
"""Where small batches come from, apart from micro-batches; docs/wire.md."""


def state_of(run: Run) -> str:
    """What is said of a run before anything else: that it has diverged, or what its process is doing."""
    return "diverged" if run.divergence is not None else run.status


def state_words(run: Run) -> str:
    """The same in words, with since when and up to which step the noise scale is."""
    if run.divergence is not None:
        return f"{run.divergence.text} Its process: {STATUS_WORDS.get(run.status, run.status)}."
    return STATUS_WORDS.get(run.status, run.status)


def noun_of(run: Run) -> str:
    """The plural of what one example is: the unit of noise scale and batch."""
    if run.units_per_example == 1 and run.unit:
        return run.unit
    return run.example if run.example.endswith("s") else run.example + "s"


def short_noun_of(run: Run) -> str:
    """The same for a dense table."""
    noun = noun_of(run)
    return SHORT_NOUNS.get(noun, noun[:6])


def measured_words(run: Run) -> str | None:
    """Where the small batches come from and how often: "4 ranks × 2 micro-batches, every 10th step"."""
    if run.estimator in (None, "none"):
        return None
    often = f", every {ordinal(run.measure_every)} step" if run.measure_every and run.measure_every > 1 else ""
    return _small_batches(run) + often


def _small_batches(run: Run) -> str:
    ranks, parts = run.num_ranks, run.num_micro_batches
    words = SMALL_BATCHES.get(run.estimator or "")
    if words is not None:
        all_ranks = f"{count(ranks)} ranks" if ranks else "all ranks"
        return words.format(ranks=all_ranks, parts=count(parts) if parts else "several")
    if run.estimator == "ranks_and_micro_batches" and ranks:
        of_rank = f" × {count(parts // ranks)}" if parts and parts % ranks == 0 else " and their"
        return f"{count(ranks)} ranks{of_rank} micro-batches"
    if run.estimator == "micro_batches":
        return f"{count(parts)} micro-batches" if parts else "micro-batches"
    return (run.estimator or "").replace("_", " ")


def ordinal(number: int) -> str:
    """2 → "2nd", 11 → "11th", 1003 → "1,003rd"."""
    tail = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{count(number)}{tail}"


def estimate_words(estimate: Estimate) -> str:
    """In short: "1,490", "> 345" or "not resolved"."""
    if estimate.value is not None:
        return significant(estimate.value)
    return f"> {significant(estimate.low)}" if estimate.low is not None else "not resolved"


def interval_words(estimate: Estimate) -> str:
    """Interval and level, "1,130 – 1,960, 95 %", or why there is none."""
    if estimate.value is None:
        return estimate.reason_text or "not resolved"
    how_sure = share(estimate.level) if estimate.state == "resolved" else "tentative"
    return f"{span(estimate.low, estimate.high)}, {how_sure}"


def runs_sentence(runs: Sequence[Run], total: int) -> str:
    """What there is, and which runs are off."""
    about = "Judged by the noise scale B_noise against the batch in use."
    if not runs:
        return about
    running = sum(run.status == "running" for run in runs)
    off = sum(run.decision.decision in CHANGES for run in runs)
    likely = sum(run.decision.decision in LIKELY for run in runs)
    diverged = sum(run.divergence is not None for run in runs)
    unsure = sum(run.decision.decision == UNDECIDED and run.divergence is None for run in runs)
    scope = f"Of the {len(runs)} shown, " if total > len(runs) else ""
    first = f"{diverged_words(diverged)}, " if diverged else ""
    gains = "would gain" if off else "is known to gain"
    parts = [f"{scope}{first}{number_word(off)} {gains} from another batch size"]
    parts += [f"{number_word(likely)} probably would"] if likely else []
    parts += [f"{number_word(unsure)} {'is' if unsure == 1 else 'are'} undecided"] if unsure else []
    said = ", ".join(parts)
    said += f"; {number_word(running)} {'is' if running == 1 else 'are'} running" if running else ""
    return f"{said[0].upper()}{said[1:]}. {about}"


def diverged_words(number: int) -> str:
    """How many have diverged."""
    return f"{number_word(number)} {'has' if number == 1 else 'have'} diverged"


def number_word(n: int) -> str:
    """In words up to ten: "none", "one", "11"."""
    words = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[n] if n < len(words) else str(n)


def series_sentence(series: NoiseScaleSeries | ShortSeries, noun: str) -> str:
    """What the figure of the noise scale shows, for those who do not see it."""
    known = [(step, v) for step, v in zip(series.points.step, series.points.value, strict=True) if v is not None]
    batches = [b for b in series.points.global_batch if b]
    batch = f" Batch {count(batches[-1])}{_since(series.events)}." if batches else ""
    if not known:
        bounds = [low for low in series.points.low if low is not None]
        bound = f", above {significant(bounds[-1])} {noun}" if bounds else ""
        return f"Noise scale not resolved{bound}.{batch}"
    (first_step, first), (last_step, last) = known[0], known[-1]
    verb = "rose" if last > 1.1 * first else "fell" if last < first / 1.1 else "stayed"
    return (
        f"Noise scale {verb} from {significant(first)} to {significant(last)} {noun} "
        f"between steps {count(first_step)} and {count(last_step)}.{batch}"
    )


def terms_sentence(series: NoiseScaleSeries, terms: tuple[str, str]) -> str:
    """What the figure of the two terms shows, for those who do not see it."""
    said = []
    for name, values in zip(terms, (series.points.trace_cov, series.points.grad_sq_norm), strict=True):
        known = [v for v in values if v is not None and v > 0]
        said += [f"{name} {significant(known[0])} at first, {significant(known[-1])} at last."] if known else []
    return " ".join(said) or "Neither term is known yet."


def efficiency_sentence(series: NoiseScaleSeries) -> str:
    """What the figure of the efficiencies shows, for those who do not see it."""
    points = series.points
    used = [phi / (phi + b) for phi, b in zip(points.value, points.global_batch, strict=True) if phi and b]
    if not used:
        return "No efficiency is known before the noise scale is resolved."
    return f"Example efficiency {share(used[0])} at first, {share(used[-1])} at last; step efficiency is the rest."


def loss_sentence(series: NoiseScaleSeries, metrics: Sequence[Metric]) -> str:
    """What the figure of the loss shows, for those who do not see it."""
    known = [v for v in series.points.loss if v is not None]
    said = [f"Training loss {significant(known[0])} at first, {significant(known[-1])} at last."] if known else []
    for metric in metrics:
        last = metric.last
        if last is not None:
            said.append(f"{metric.name} {significant(last[1])} at step {count(last[0])}.")
    return " ".join(said) or "No loss was logged."


def _since(events: Sequence[Event]) -> str:
    changes = [event.step for event in events if event.kind == "batch"]
    return f" since step {si(max(changes))}" if changes else " throughout"


def batch_since(series: NoiseScaleSeries) -> str:
    """In short: "since step 40k", or "unchanged"."""
    return _since(series.events).strip() if any(e.kind == "batch" for e in series.events) else "unchanged"


def progress_words(run: Run, series: NoiseScaleSeries) -> str:
    """How fast training goes, and how long it still takes where the end is planned."""
    if run.divergence is not None:
        return f"diverged at step {count(run.divergence.step)}"
    times = [t for t in series.points.wall_time if t is not None]
    steps = series.points.step
    if len(times) < 2 or times[-1] <= times[0]:
        return STATUS_WORDS.get(run.status, run.status)
    speed = (steps[-1] - steps[0]) / (times[-1] - times[0])
    pace = f"{significant(speed, 2)} steps/s"
    left = (run.planned_steps or 0) - (run.last_step or 0)
    if run.status == "running" and left > 0 and speed > 0:
        return f"{duration(left / speed)} left · {pace}"
    return f"{STATUS_WORDS.get(run.status, run.status).split(',')[0]} · {pace}"


def ledger_sentence(streams: Sequence[Stream]) -> tuple[bool, str]:
    """Whether every record arrived, and a sentence that says so with numbers."""
    stored = sum(stream.num_stored for stream in streams)
    missing = sum(stream.num_lost + stream.num_rejected for stream in streams)
    if not streams:
        return True, "No process has logged into this run yet."
    if not missing:
        return True, f"Complete: {count(stored)} records stored, none lost."
    return False, f"{count(missing)} of {count(stored + missing)} records did not arrive; {count(stored)} are stored."


def preference_word(preference: float) -> str:
    """A preference from 0 (fewest examples) to 1 (fewest steps), in words."""
    if abs(preference - 0.5) < 0.025:
        return "balanced"
    return f"{share(preference)} towards fewer steps"
