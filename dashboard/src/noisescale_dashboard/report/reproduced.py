"""What `noisescale reproduce` has found as one HTML file: the cross-task figure and the tables, nothing is loaded."""

from typing import Any

from dash import html

from noisescale_dashboard.answers import Interval, Json
from noisescale_dashboard.compare_answers import ComparedTask, Comparison, PublishedNumber, PublishedTask, Statistics
from noisescale_dashboard.figures.noise_scale_against_critical_batch import noise_scale_against_critical_batch
from noisescale_dashboard.figures.svg import as_svg
from noisescale_dashboard.figures.svg.markup import literal
from noisescale_dashboard.pages.parts import Child
from noisescale_dashboard.report.document import page
from noisescale_dashboard.report.markup import Markup

HEADLINE = ("near_critical", "hardest", "all tasks")
PUBLISHED_UNITS = {"Billion Word LM (LSTM)": "tokens", "Dota 1v1 (PPO)": "observations"}
"""Of Table 1; all others count images."""

WIDE, NARROW = 776, 342
ARTICLE_R_SQUARED = 0.8
STYLE = "pre{font:9.5px/13px ui-monospace,monospace;overflow-x:auto;margin:0}.sheet{width:auto;max-width:1240px}"


def document(found: Json, tables: str) -> str:
    """The whole file, in UTF-8 as it stands.

    Args:
        found: The summary that the command writes.
        tables: Its tables as text.
    """
    compared = comparison(found)
    parts: list[Child] = [
        html.H1("Does the noise scale foretell the critical batch size?"),
        html.P(_sentence(compared), className="lede"),
        *_figures(compared),
        html.Section([html.H2("Tables"), html.Pre(Markup(literal(tables)))]),
    ]
    return page("noisescale reproduce", html.Main(html.Article(parts, className="sheet")), style=STYLE)


def comparison(found: Json) -> Comparison:
    """Noise scale and B_crit of each task's hardest target that counts, beside the published points."""
    series = {(one["average"], one["targets"], one["tasks"]): one for one in found["series"]}
    own = series[HEADLINE]["agreement"]
    published = next(one for one in found["series"] if one["average"] == "published")
    drawn = {(point["task"], point["target"]) for point in series[HEADLINE]["points"]}
    return Comparison(
        tasks=tuple(_task(row) for row in found["targets"] if (row["task"], row["target"]) in drawn),
        statistics=None if own is None else _statistics(own),
        statistics_missing=None if own is not None else "fewer than five tasks",
        orders=(),
        published=tuple(_published(point) for point in published["points"]),
        published_statistics=_statistics(published["agreement"]),
        published_orders=(),
        published_sweeps=(),
        article_r_squared=ARTICLE_R_SQUARED,
    )


def _sentence(found: Comparison) -> str:
    one = found.statistics
    if one is None:
        return f"No figures over tasks: {found.statistics_missing}."
    return (
        f"{one.num_tasks} tasks over {one.decades_of_critical_batch:.1f} decades of B_crit: r² {_said(one.r_squared)} "
        f"about the fitted line, {_said(one.r_squared_of_identity)} about B_crit = noise scale; off by a factor of "
        f"{_said(one.rms_factor)} (rms); {_said(one.within_factor_3, percent=True)} within a factor of 3. "
        "r² is governed by the span: read it with the factor. Brackets: 95 %, tasks drawn again."
    )


def _said(figure: Interval, *, percent: bool = False) -> str:
    value, low, high = (
        ("–" if end is None else f"{100 * end:.0f} %" if percent else f"{end:.2f}") for end in _ends(figure)
    )
    return f"{value} [{low}, {high}]"


def _ends(figure: Interval) -> tuple[float | None, float | None, float | None]:
    return figure.value, figure.low, figure.high


def _figures(found: Comparison) -> list[html.Div]:
    described = "Critical batch size over noise scale, each task in its own unit, with 95 % intervals"
    return [
        html.Div(html.Figure([_svg(found, name, width, described), html.Figcaption(_caption(found))]), className=name)
        for name, width in (("wide", WIDE), ("narrow", NARROW))
    ]


def _svg(found: Comparison, name: str, width: int, described: str) -> Markup:
    figure = noise_scale_against_critical_batch(found, narrow=name == "narrow")
    return Markup(as_svg(figure, width=width, name=name, description=described))


def _caption(found: Comparison) -> str:
    return (
        f"B_crit over the noise scale, averaged along the tuned run nearest B_crit. Filled: {len(found.tasks)} tasks "
        f"of this machine; open: {len(found.published)} published (McCandlish et al. 2018, Table 1)."
    )


def _task(row: Json) -> ComparedTask:
    factor = row["units_per_example"]

    def in_units(name: str) -> Interval:
        ends = (row[name], row[f"{name}_low"], row[f"{name}_high"])
        return Interval(*(None if end is None else end * factor for end in ends))

    return ComparedTask(
        project="reproduce",
        task=row["task"],
        unit=row["unit"],
        sweep_id="",
        optimizer=row["optimizer"],
        noise_scale=in_units("near_critical"),
        critical_batch=in_units("critical_batch"),
        target=row["target"],
    )


def _published(point: Json) -> PublishedTask:
    scale, batch = (PublishedNumber("point", point[name]) for name in ("noise_scale", "critical_batch"))
    return PublishedTask(point["task"], PUBLISHED_UNITS.get(point["task"], "images"), "point", scale, batch)


def _statistics(data: Json) -> Statistics:
    def figure(name: str) -> Interval:
        return Interval(**data[name])

    unknown: dict[str, Any] = {"typical_kappa": Interval()}
    return Statistics(
        num_tasks=data["num_tasks"],
        r_squared=figure("r_squared_of_fit"),
        r_squared_of_identity=figure("r_squared_of_identity"),
        slope=figure("slope"),
        rms_factor=figure("rms_factor"),
        within_factor_2=figure("within_factor_2"),
        within_factor_3=figure("within_factor_3"),
        decades_of_critical_batch=data["decades"],
        **unknown,
    )
