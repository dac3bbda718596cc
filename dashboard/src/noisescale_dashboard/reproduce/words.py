"""Sentences about what `noisescale reproduce` found, for its page and its report."""

from noisescale_dashboard.answers.common import Interval, Json
from noisescale_dashboard.answers.comparisons import Comparison
from noisescale_dashboard.answers.reproductions import Reproduction
from noisescale_dashboard.words.number_format import NOTHING, significant

AVERAGES = {
    "near_critical": "nearest B_crit",
    "ideal_steps": "in ideal steps",
    "all_batches": "all batch sizes",
    "published": "published",
}
FOLLOWED = "ours"
"""The policy that `noisescale.follow` acts on, in the tables of the advice."""


def figures_words(found: Comparison) -> str:
    """How well the noise scale predicts B_crit, with intervals, or why nothing is said."""
    one = found.statistics
    if one is None:
        return f"No figures over tasks: {found.statistics_missing}."
    return (
        f"{one.num_tasks} tasks over {one.decades_of_critical_batch:.1f} decades of B_crit: "
        f"r² {bracketed(one.r_squared)} about the fitted line, "
        f"{bracketed(one.r_squared_of_identity)} about B_crit = noise scale; off by a factor of "
        f"{bracketed(one.rms_factor)} (rms); {bracketed(one.within_factor_3, percent=True)} within a factor of 3. "
        "r² is governed by the span: read it with the factor. Brackets: 95 %, tasks drawn again."
    )


def bracketed(figure: Interval, *, percent: bool = False) -> str:
    """A figure with its interval: "0.91 [0.74, 0.98]"."""
    value, low, high = (
        (NOTHING if end is None else f"{100 * end:.0f} %" if percent else f"{end:.2f}".replace("-", "−"))
        for end in (figure.value, figure.low, figure.high)
    )
    return f"{value} [{low}, {high}]"


def figure_caption(found: Comparison) -> str:
    """What the marks of the figure are."""
    band = significant(found.published_statistics.rms_factor.value, 2)
    return (
        f"Filled: {len(found.tasks)} tasks of this reproduction, noise scale averaged along the tuned run nearest "
        f"B_crit, with 95 % whiskers · open: {len(found.published)} published (McCandlish et al. 2018, Table 1) · "
        f"colour: what an example is counted in · line: B_crit = noise scale · band: × or ÷ {band}, the published rms."
    )


def advice_words(advice: Json) -> str:
    """What following the advice has cost on tasks that no policy was designed on, over keeping what one has."""
    for row in advice["policies"]:
        if (row["tasks"], row["policy"], row["kind"]) == ("held out", FOLLOWED, "all"):
            ends = Interval(row["relative"], row["low"], row["high"])
            return (
                f"Following the advice took {bracketed(ends)} of the cost of keeping what one has, over all starts on "
                f"held-out tasks with a {row['rate']} rate; brackets: 95 %, tasks drawn again."
            )
    return "Of the advice itself no held-out task was replayed."


def origin_words(one: Reproduction) -> str:
    """Which campaign it was: "quick, seed 0, noisescale 0.1.0, 22 Nov 2026"."""
    return f"{one.effort}, seed {one.seed}, noisescale {one.version}, stored {one.created_at[:10]}"
