"""What the REST API answers about reproductions: what `noisescale reproduce` found.

The fields of a claim and of advice are those of docs/rest.md, "Reproductions"; the server has checked them.
"""

from dataclasses import dataclass

from noisescale_dashboard.answers.common import Interval, Json, decoded
from noisescale_dashboard.answers.comparisons import (
    ComparedTask,
    Comparison,
    PublishedNumber,
    PublishedTask,
    Statistics,
)

HEADLINE = ("near_critical", "hardest", "all tasks")
"""Average, targets and tasks of the series that the figure shows."""
PUBLISHED_UNITS = {"Billion Word LM (LSTM)": "tokens", "Dota 1v1 (PPO)": "observations"}
"""Of Table 1; all others count images."""
ARTICLE_R_SQUARED = 0.8


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A stored reproduction: a `claim`, or what `advice` was worth; both None in a list."""

    id: str
    project: str
    kind: str
    effort: str
    seed: int
    version: str
    created_at: str
    claim: Json | None = None
    advice: Json | None = None


@dataclass(frozen=True, slots=True)
class ReproductionPage:
    """Reproductions, newest first, and how many there are."""

    reproductions: tuple[Reproduction, ...]
    total: int


def reproduction(data: Json) -> Reproduction:
    """The reproduction in `data`."""
    return decoded(Reproduction, data)


def reproduction_page(data: Json) -> ReproductionPage:
    """The page in `data`."""
    return ReproductionPage(tuple(reproduction(row) for row in data["reproductions"]), data["total"])


def comparison(claim: Json) -> Comparison:
    """Noise scale and B_crit of each task's hardest target that counts, beside the published points."""
    series = {(one["average"], one["targets"], one["tasks"]): one for one in claim["series"]}
    own = series[HEADLINE]["agreement"]
    published = next(one for one in claim["series"] if one["average"] == "published")
    drawn = {(point["task"], point["target"]) for point in series[HEADLINE]["points"]}
    return Comparison(
        tasks=tuple(_task(row) for row in claim["targets"] if (row["task"], row["target"]) in drawn),
        statistics=None if own is None else statistics(own),
        statistics_missing=None if own is not None else "fewer than five tasks",
        orders=(),
        published=tuple(_published(point) for point in published["points"]),
        published_statistics=statistics(published["agreement"]),
        published_orders=(),
        published_sweeps=(),
        article_r_squared=ARTICLE_R_SQUARED,
    )


def statistics(agreement: Json) -> Statistics:
    """The figures of one series; the typical κ is not among them."""

    def figure(name: str) -> Interval:
        return Interval(**agreement[name])

    return Statistics(
        num_tasks=agreement["num_tasks"],
        r_squared=figure("r_squared_of_fit"),
        r_squared_of_identity=figure("r_squared_of_identity"),
        slope=figure("slope"),
        rms_factor=figure("rms_factor"),
        typical_kappa=Interval(),
        within_factor_2=figure("within_factor_2"),
        within_factor_3=figure("within_factor_3"),
        decades_of_critical_batch=agreement["decades"],
    )


def in_units(row: Json, name: str) -> Interval:
    """A number of a target with its interval, in the task's unit; a lower end of nothing is no end on a log axis."""
    value, low, high = (row[name], row[f"{name}_low"], row[f"{name}_high"])
    if low is not None and low <= 0:
        low = None
    return Interval(*(None if end is None else end * row["units_per_example"] for end in (value, low, high)))


def _task(row: Json) -> ComparedTask:
    return ComparedTask(
        project="reproduce",
        task=row["task"],
        unit=row["unit"],
        sweep_id="",
        optimizer=row["optimizer"],
        noise_scale=in_units(row, "near_critical"),
        critical_batch=in_units(row, "critical_batch"),
        target=row["target"],
    )


def _published(point: Json) -> PublishedTask:
    scale, batch = (PublishedNumber("point", point[name]) for name in ("noise_scale", "critical_batch"))
    return PublishedTask(point["task"], PUBLISHED_UNITS.get(point["task"], "images"), "point", scale, batch)
