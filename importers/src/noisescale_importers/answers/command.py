"""What follows from the imported runs, in sentences; where nothing follows, what is missing."""

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from statistics import fmean

from noisescale_importers.answers import sweep
from noisescale_importers.answers.equal_loss import AtLoss, noise_scales
from noisescale_importers.answers.scaling import (
    beside_each_other,
    fit_sentences,
    interval,
    number,
    quality_sentences,
    regimes,
)
from noisescale_importers.answers.summary import Summary
from noisescale_importers.delivery.assembly import REACHED
from noisescale_importers.delivery.connection import Connection


def say_what_follows(
    summaries: Sequence[Summary],
    connection: Connection,
    project: str,
    *,
    targets: Sequence[float],
    goal: str | None,
    is_clipped: bool,
    prices: Mapping[str, float],
) -> Iterator[str]:
    """Sentences about each task.

    Args:
        summaries: Of the runs that arrived.
        connection: To the server.
        project: Of the runs.
        targets: Asked for; empty: proposed from the curves.
        goal: Asked for; None: by the name of the metric.
        is_clipped: Whether gradient norms are of clipped gradients.
        prices: By run, USD of a device and hour.

    Raises:
        TransportError: Without a server.
        ConfigError: Where the key may not.
    """
    fitted: list[tuple[str, str, str, str]] = []
    of_task: dict[str, list[Summary]] = defaultdict(list)
    for one in summaries:
        of_task[one.task].append(one)
    for task, found in of_task.items():
        runs = _of_one_unit(found)
        yield f"\n{task}: {len(runs)} {'run' if len(runs) == 1 else 'runs'}"
        if len(runs) < len(found):
            yield (
                f"{len(found) - len(runs)} more do not count in {_counted_in(runs[0])} as these do, so that their "
                "batches are no neighbours: --batch, --tokens and --sequence-length say it, or a --task of their own"
            )
        scales = [] if is_clipped else noise_scales(runs)
        missing = None if scales else _missing_for_norms(runs, is_clipped=is_clipped)
        yield from _of_norms(runs, scales, missing)
        fit = yield from _of_sweep(runs, connection, project, task, targets, goal, scales, missing, fitted)
        yield from _of_times(runs, fit, prices)
    yield from beside_each_other(fitted)


def _counted_in(run: Summary) -> str:
    """What its batches count: sequences of 512 tokens, tokens, examples."""
    return run.unit if run.units_per_example == 1 else f"sequences of {number(run.units_per_example)} {run.unit}"


def _of_one_unit(runs: Sequence[Summary]) -> list[Summary]:
    """Most of the runs: those whose batches count the same."""
    ((wanted, _),) = Counter(map(_counted_in, runs)).most_common(1)
    return [one for one in runs if _counted_in(one) == wanted]


def _of_norms(runs: Sequence[Summary], scales: Sequence[AtLoss], missing: str | None) -> Iterator[str]:
    if scales:
        unit, scale = runs[0].unit, runs[0].units_per_example
        yield (
            "noise scale between runs (different parameters: an equation between runs at equal loss, which are taken "
            f"to differ by {scales[0].estimate.spread:.0%}; as of runs with large batches):"
        )
        for one in scales:
            found = one.estimate
            low = "0" if found.low is None else number(found.low * scale)
            high = "no upper bound" if found.high is None else number(found.high * scale)
            value = "not resolved" if found.value is None else number(found.value * scale)
            yield f"  loss {one.loss:.4g}: {value} [{low}, {high}] {unit}, from batches of {_list(one.batch_sizes)}"
        num_clipped = sum(one.norms.are_clipped for one in runs)
        if num_clipped:
            yield f"  {num_clipped} runs were left out: many of their norms are as large as the largest, so clipped"
        return
    yield f"no noise scale between runs: {missing}"


def _missing_for_norms(runs: Sequence[Summary], *, is_clipped: bool) -> str:
    if is_clipped:
        return "the norms are of clipped gradients, which say nothing of |G|²"
    if not any(one.norm_name for one in runs):
        return "no run has gradient norms: log them before clipping, or name their column by --gradient-norm"
    if not any(one.batches for one in runs):
        return "no run has a batch size: give it by --batch"
    if not any(one.loss.steps for one in runs):
        return "no run has a training loss, at which the runs could be compared"
    sizes = {batch for one in runs for batch in one.batches}
    if len(sizes) < 2:
        return f"all runs have a batch of {_list(sorted(sizes))}: it takes two batch sizes, or a run with a ramp"
    num_clipped = sum(one.norms.are_clipped for one in runs)
    if num_clipped:
        return (
            f"in {num_clipped} of {len(runs)} runs many norms are as large as the largest, as those of clipped "
            "gradients are, which say nothing of |G|²: log them before clipping"
        )
    return "runs of different batch sizes do not pass the same loss with norms at four blocks of steps at least"


def _of_sweep(
    runs: Sequence[Summary],
    connection: Connection,
    project: str,
    task: str,
    targets: Sequence[float],
    goal: str | None,
    scales: Sequence[AtLoss],
    missing: str | None,
    fitted: list[tuple[str, str, str, str]],
) -> Generator[str, None, Mapping[str, object] | None]:
    """Sentences about the sweep; gives back what it says about its first target."""
    question = sweep.question_of(runs, goal)
    if question is None:
        yield f"no sweep: {_missing_for_sweep(runs)}"
        if not scales:
            return None
        question = sweep.NO_QUESTION  # what was found between runs is kept all the same
    facts: dict[str, object] = {"unit": runs[0].unit, "units_per_example": runs[0].units_per_example}
    between = {"losses": [_stored(one) for one in scales], "missing": missing}
    wanted = list(targets) or list(dict.fromkeys(target for one in runs for target in one.targets))
    sweep_id, fits = sweep.store(connection, project, task, question, wanted, facts, between)
    if not question.trials:
        yield f"the noise scale between runs is kept as {sweep_id} (/sweeps/{sweep_id})"
        return None
    name = question.metric or "training loss"
    yield f"sweep {sweep_id}: {len(question.batches)} batch sizes, {question.how}"
    if any(trial.lr is None for trial in question.trials):
        yield "  no learning rate is known of some runs: runs of one batch size are taken as repeats of one rate"
    for fit in fits:
        target = fit.get("target")
        said = "the target" if question.metric == REACHED else f"{name} {target}"
        for place, sentence in enumerate(fit_sentences(fit, runs[0].unit, runs[0].units_per_example)):
            yield f"  {said}: {sentence}" if place == 0 else f"    {sentence}"
        scaling = regimes(fit)
        if scaling is not None:
            yield f"    {scaling}"
        values = fit.get("fit")
        if fit is fits[0] and isinstance(values, Mapping):
            critical = interval(values.get("critical_batch"), runs[0].units_per_example)
            fitted.append((task, said, f"{critical} {runs[0].unit}", scaling or ""))
    yield from quality_sentences(connection, sweep_id)
    return fits[0]


def _stored(one: AtLoss) -> Mapping[str, object]:
    found = one.estimate
    return {
        "loss": one.loss,
        "batch_sizes": list(one.batch_sizes),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "level": found.level,
        "spread": found.spread,
    }


def _missing_for_sweep(runs: Sequence[Summary]) -> str:
    ramps = [one for one in runs if len(one.batches) > 1]
    sizes = sorted({batch for one in runs if (batch := one.batch) is not None})
    if not sizes and not ramps:
        return "no run has a batch size: give it by --batch, or name its column"
    if len(sizes) < sweep.MIN_BATCH_SIZES:
        also = f", and {len(ramps)} runs change theirs" if ramps else ""
        return f"it takes runs at three batch sizes, there are {len(sizes)} ({_list(sizes)}){also}"
    return "runs at three batch sizes need a training loss, an evaluation metric (--metric), or --steps-to-target"


def _of_times(runs: Sequence[Summary], fit: Mapping[str, object] | None, prices: Mapping[str, float]) -> Iterator[str]:
    """Seconds of a step by batch size, where the source has times; with a fit, time and cost to its target."""
    paces: dict[float, list[float]] = defaultdict(list)
    usd: dict[float, list[float]] = defaultdict(list)
    for one in runs:
        if one.batch is not None and one.seconds_per_step is not None:
            paces[one.batch].append(one.seconds_per_step)
            usd[one.batch] += [prices[one.run_id]] if one.run_id in prices else []
    if not paces:
        return
    parts = [f"{number(batch)}: {number(fmean(found))} s" for batch, found in sorted(paces.items())]
    yield f"  a step takes, by batch: {', '.join(parts)}"
    found = fit.get("points") if fit is not None else None
    points = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    times = []
    for point in points:
        batch, steps = point.get("batch_size"), point.get("steps")
        if batch in paces and steps is not None:
            hours = steps * fmean(paces[batch]) / 3600
            cost = f" and {number(hours * fmean(usd[batch]))} USD a device" if usd[batch] else ""
            times.append(f"{number(batch)}: {number(hours)} h{cost}")
    if times:
        yield f"  to {fit['target'] if fit is not None else 'the target'}, by batch: {', '.join(times)}"


def _list(sizes: Sequence[float]) -> str:
    return ", ".join(number(size) for size in sizes) or "none"
