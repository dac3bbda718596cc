"""Sentences of the page that compares tasks, sizes, runs and configurations, made from the answers."""

from collections.abc import Sequence

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.comparisons import ComparedTask, Comparison, ModelSizes, Ratio, Statistics, TaskOrder
from noisescale_dashboard.words.number_format import count, share, share_span, significant, span
from noisescale_dashboard.words.sentences import number_word

PREDICTS_WITHIN = 3.0
"""A noise scale that is typically off by at most so much tells which batch to use; Table 1's is off by 7."""
TASKS_NEEDED = 5
"""With a noise scale and a critical batch, before a correlation says anything."""

KNOWN_SHARE = 0.5
"""r² whose whole interval lies above this: the order of the tasks is foretold."""
PUBLISHED_QUANTITY = "noise_scale"
"""Of the published chains; one's own are of an average."""
AXES = {"step": "equal steps", "units": "equal {unit}", "time": "equal time", "loss": "equal loss"}


def tasks_headline(found: Comparison) -> str:
    """Whether the noise scale predicts the critical batch over one's own tasks, with the factor it is off by."""
    own = found.statistics
    if own is None:
        number = sum(task.left_out is None for task in found.tasks)
        return f"Sweep {TASKS_NEEDED} tasks to test the noise scale here ({count(number)} done)"
    factor = factor_words(own.rms_factor)
    match verdict(own):
        case "predicts":
            return f"The noise scale predicts the critical batch here, to {factor}"
        case "roughly":
            return f"The noise scale predicts the critical batch here only roughly, to {factor}"
        case "does_not":
            return f"The noise scale does not predict the critical batch here: it is off by {factor}"
        case _:
            return f"Cannot tell yet whether the noise scale predicts the critical batch here: off by {factor}"


def verdict(own: Statistics) -> str:
    """`predicts`, `roughly`, `does_not`, or `cannot_tell` where the intervals over tasks leave it open."""
    off, explained = own.rms_factor, own.r_squared
    if (explained.high or 1.0) < KNOWN_SHARE:
        return "does_not"
    if (explained.low or 0.0) < KNOWN_SHARE or off.high is None:
        return "cannot_tell"
    return "predicts" if off.high <= PREDICTS_WITHIN else "roughly"


def factor_words(found: Interval) -> str:
    """In short: "× or ÷ 1.9"."""
    return "an unknown factor" if found.value is None else f"× or ÷ {significant(found.value, 2)}"


def tasks_lede(found: Comparison) -> str:
    """What is drawn, how sure the answer is, and what lies beside it."""
    said = []
    own = found.statistics
    if own is not None:
        said.append(
            f"{count(own.num_tasks)} of your tasks over {significant(own.decades_of_critical_batch, 2)} decades of "
            f"B_crit: noise scale B_noise off by × or ÷ {significant(own.rms_factor.value, 2)} "
            f"({span(own.rms_factor.low, own.rms_factor.high)} over other tasks), r² {_two(own.r_squared)}."
        )
    elif found.drawn:
        said.append(f"{number_word(len(found.drawn)).capitalize()} of your tasks beside the published ones.")
    else:
        said.append("Shown are published noise scales B_noise and critical batches.")
    published = found.published_statistics
    said.append(
        f"Published: × or ÷ {significant(published.rms_factor.value, 2)}, r² {_two(published.r_squared)} on "
        f"{count(published.num_tasks)} tasks (the article says {significant(found.article_r_squared, 2)})."
    )
    return " ".join(said)


def _two(found: Interval) -> str:
    return significant(found.value, 2)


def statistics_rows(found: Comparison) -> list[tuple[str, str, str, str]]:
    """(what, one's own, its interval over tasks, published), all numbers in words."""
    own, published = found.statistics, found.published_statistics

    def row(words: str, name: str) -> tuple[str, str, str, str]:
        mine: Interval = getattr(own, name) if own else Interval()
        theirs: Interval = getattr(published, name)
        if "within" in name:
            return words, share(mine.value), share_span(mine.low, mine.high), share(theirs.value)
        ends = f"{significant(mine.low, 2)} – {significant(mine.high, 2)}" if mine.low is not None else "–"
        sign = "×/÷ " if "factor" in name else ""
        shown = f"{sign}{_two(mine)}" if mine.value is not None else "–"
        return words, shown, ends, f"{sign}{_two(theirs)}"

    rows = [
        row("r² about the fit", "r_squared"),
        row("r² about y = x", "r_squared_of_identity"),
        row("Slope", "slope"),
        row("Off by, rms", "rms_factor"),
        row("κ, median", "typical_kappa"),
        row("Within × ÷ 2", "within_factor_2"),
        row("Within × ÷ 3", "within_factor_3"),
    ]
    spans = [significant(one.decades_of_critical_batch, 2) if one else "–" for one in (own, published)]
    numbers = [count(one.num_tasks) if one else "–" for one in (own, published)]
    return [
        *rows,
        ("Decades of B_crit", spans[0], "", spans[1]),
        ("Tasks", numbers[0], "", numbers[1]),
    ]


def left_out_words(task: ComparedTask) -> str:
    """A task that the statistics leave out, with the reason."""
    name = f"{task.task}, {task.optimizer}" if task.optimizer else task.task
    known = task.critical_batch
    bound = f" B_crit is above {significant(known.low)} {task.unit}." if known.value is None and known.low else ""
    return f"{name}: {task.left_out or ''}{bound}"


def scatter_sentence(found: Comparison) -> str:
    """What the scatter shows, for those who do not see it."""
    numbers = [
        (task, significant(task.noise_scale.value), significant(task.critical_batch.value)) for task in found.drawn
    ]
    own = [f"{task.task} {scale} against {batch} {task.unit}" for task, scale, batch in numbers]
    published = f"{len(found.published)} published tasks and {len(found.published_sweeps)} published critical batches"
    if not own:
        return f"Noise scale against critical batch: {published}; none of yours."
    return f"Noise scale against critical batch: {', '.join(own)}; beside {published}."


def order_words(order: TaskOrder) -> str:
    """Whether a chain rises: "Image classification: yes, 33 ×", first to last."""
    name = order.chain[:1].upper() + order.chain[1:] + ("" if order.quantity == PUBLISHED_QUANTITY else ", yours")
    if order.holds is None:
        return f"{name}: cannot tell, intervals overlap"
    if not order.holds:
        return f"{name}: no"
    low = significant(order.factor_low, 2)
    factor = low if order.factor_high == order.factor_low else f"at least {low}"
    return f"{name}: yes, {factor} ×"


def sizes_verdict(found: ModelSizes) -> str:
    """The test at equal loss: "No: ×1.04 per 10 × size at equal loss, 0.93 – 1.17."."""
    if found.effect is None:
        return found.reason or "Not enough data on model sizes yet."
    said = found.effect.explanation
    if found.has_common_losses is False:
        said += " No loss was seen by all sizes, so equal loss is extrapolated."
    bend = found.effect.interaction
    if bend.low is not None and bend.high is not None and (bend.low > 0 or bend.high < 0):
        said += " The effect is not the same at every loss."
    return said


def sizes_sentence(found: ModelSizes) -> str:
    """What the figure of sizes shows, for those who do not see it."""
    sizes = sorted({run.size for run in found.runs if run.size is not None})
    said = ", ".join(significant(size) for size in sizes)
    return f"Noise scale against training loss for models of size {said}. {sizes_verdict(found)}"


def axis_words(x: str, unit: str) -> str:
    """Where runs are compared: "equal steps"."""
    return AXES[x].format(unit=unit)


def runs_headline(names: Sequence[str], ratios: Sequence[Ratio], where: str, *, are_alike: bool = True) -> str:
    """How far the noise scales of runs lie apart where they have come equally far.

    Args:
        names: In the order of the runs.
        ratios: Of all but the first to it.
        where: They have come equally far.
        are_alike: They count the same things: images are not more or fewer than sequences.
    """
    if len(names) < 2:
        return "Choose a second run to compare with"
    if not are_alike:
        return "These runs count in different units, so their noise scales cannot be compared"
    known = [(name, ratio.mean) for name, ratio in zip(names[1:], ratios, strict=True) if ratio.mean.value is not None]
    if not known:
        return f"No clear noise scale at {where} yet: pick a baseline with one"
    if len(names) == 2:
        return _of_two(names, ratios[0].mean, where)
    name, furthest = max(known, key=lambda pair: max(pair[1].value or 1, 1 / (pair[1].value or 1)))
    if all(_holds_one(mean) for _, mean in known):
        return f"No difference of noise scale from {names[0]} is seen at {where}"
    return f"At {where} noise scales differ on average by up to {_times(furthest.value or 1)}: {name} from {names[0]}"


def _of_two(names: Sequence[str], mean: Interval, where: str) -> str:
    if _holds_one(mean):
        return f"No difference of noise scale is seen at {where}"
    value = mean.value or 1.0
    more = "larger" if value > 1 else "smaller"
    return f"At {where} the noise scale of {names[1]} is on average {_times(value)} {more} than that of {names[0]}"


def _times(value: float) -> str:
    return f"{significant(max(value, 1 / value), 2)} ×"


def _holds_one(mean: Interval) -> bool:
    return (mean.low is None or mean.low <= 1) and (mean.high is None or mean.high >= 1)


def ratio_words(mean: Interval) -> str:
    """The mean ratio with its interval: "1.8 × [1.2 – 2.6]", or that there is none."""
    if mean.value is None:
        return "not resolved"
    ends = f" [{significant(mean.low, 2)} – {significant(mean.high, 2)}]" if mean.low and mean.high else ""
    return f"{significant(mean.value, 2)} ×{ends}"


def ratios_sentence(names: Sequence[str], ratios: Sequence[Ratio], where: str) -> str:
    """What the figure of ratios shows, for those who do not see it."""
    said = [f"{name} {ratio_words(ratio.mean)}" for name, ratio in zip(names[1:], ratios, strict=True)]
    return f"Noise scale over that of {names[0]} at {where}: {', '.join(said)}." if said else "Only one run is shown."


def config_headline(num_different: int, num_settings: int, num_runs: int) -> str:
    """What differs: "3 of 12 settings differ between 4 runs"."""
    if num_runs < 2:
        return "Choose a second run to see what differs"
    if not num_different:
        return f"The {num_runs} runs agree in all {num_settings} settings"
    verb = "differs" if num_different == 1 else "differ"
    return f"{number_word(num_different).capitalize()} of {num_settings} settings {verb} between {num_runs} runs"
