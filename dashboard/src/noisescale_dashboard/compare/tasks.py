"""Across tasks: does the noise scale predict the critical batch, and do harder tasks have a larger one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dash import html

from noisescale_dashboard.answers.comparisons import Comparison, Rung, TaskOrder
from noisescale_dashboard.compare import words as compare_sentences
from noisescale_dashboard.figures.comparison import noise_scale_against_critical_batch as scatter
from noisescale_dashboard.figures.comparison import task_order
from noisescale_dashboard.figures.parts.theme import LIGHT, UNITS, colors_of_units
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, figure_box, link, note

GRAPHS = ("scatter", "order")
MAX_CHAINS, MAX_RUNGS = 2, 8
"""Of one's own tasks: a figure of all tasks of a large project would be longer than the page."""


def cards(*, narrow: bool) -> list[html.Section]:
    """Scatter, statistics and order before their first data."""
    height = scatter.NARROW_HEIGHT if narrow else scatter.HEIGHT
    return [
        card(
            "Critical batch against noise scale",
            "Log–log, each task in its own unit · whiskers: 95 %",
            figure_box("compare-scatter", card_id="compare-scatter-card", height=height),
            card_id="compare-scatter-card",
            actions=[html.Div(id="compare-key", className="row wrap key")],
            footer=[],
            is_figure=True,
            class_name="scatter-card",
        ),
        card(
            "How well it predicts",
            "Logarithms, over tasks · interval: other tasks",
            html.Div(id="compare-statistics"),
            card_id="compare-statistics-card",
            has_table=True,
            class_name="statistics-card",
        ),
        card(
            "Is it larger for harder tasks?",
            "Noise scale, log, run average, each in its unit",
            figure_box("compare-order", card_id="compare-order-card", height=task_order.PUBLISHED_HEIGHT),
            card_id="compare-order-card",
            footer=[],
            is_figure=True,
            class_name="order-card",
        ),
    ]


def changes(found: Comparison, *, narrow: bool) -> dict[str, Any]:
    """What the page shows of the comparison over tasks."""
    orders = shown_orders(found)
    return {
        "compare-head.children": compare_sentences.tasks_headline(found),
        "compare-lede.children": compare_sentences.tasks_lede(found),
        "compare-note.children": None if found.tasks else _no_tasks(),
        "compare-task-figures.data": {
            "scatter": scatter.noise_scale_against_critical_batch(found, narrow=narrow),
            "order": task_order.task_order(orders, colors_of_tasks(found)),
        },
        "compare-key.children": key(found),
        "compare-scatter-card-footer.children": _footer(found),
        "compare-scatter-sentence.children": compare_sentences.scatter_sentence(found),
        "compare-statistics.children": _statistics(found),
        "compare-order-card-footer.children": [html.Div(compare_sentences.order_words(order)) for order in orders],
        "compare-order-sentence.children": ". ".join(compare_sentences.order_words(order) for order in orders),
    }


def shown_orders(found: Comparison) -> list[TaskOrder]:
    """One's own longest chains, cut short, then the published ones of the noise scale; those of B_crit say the same."""
    own = sorted(found.orders, key=lambda order: -len(order.rungs))[:MAX_CHAINS]
    published = [order for order in found.published_orders if order.quantity == compare_sentences.PUBLISHED_QUANTITY]
    return [*(replace(order, rungs=_some(order.rungs)) for order in own), *published]


def _some(rungs: Sequence[Rung]) -> tuple[Rung, ...]:
    """At most so many, evenly from the first to the last."""
    last, most = len(rungs) - 1, MAX_RUNGS - 1
    return tuple(rungs) if last <= most else tuple(rungs[round(place * last / most)] for place in range(MAX_RUNGS))


def colors_of_tasks(found: Comparison) -> Mapping[str, str]:
    """The colour of each task by its unit, as in the scatter."""
    units = {task.task: task.unit for task in found.published} | {task.task: task.unit for task in found.tasks}
    colors = colors_of_units(units.values())
    return {task: colors[unit] for task, unit in units.items()}


def key(found: Comparison) -> list[Child]:
    """The colour of each unit that is drawn, and the mark of what is published."""
    units = {task.unit for task in found.drawn} | {task.unit for task in found.published}
    colors = colors_of_units(units)
    ordered = sorted(units, key=lambda unit: (UNITS.index(unit) if unit in UNITS else len(UNITS), unit))
    return [
        *(html.Span([html.Span(className=f"sw round {_class_of(colors[unit])}"), unit[:20]]) for unit in ordered),
        html.Span([html.Span(className="sw round open"), "published"]),
    ]


def _class_of(color: str) -> str:
    return f"cat{LIGHT.categories.index(color) + 1}" if color in LIGHT.categories else "cat0"


def _footer(found: Comparison) -> list[Child]:
    """What the marks mean, and what the statistics leave out, each with its reason."""
    marks = (
        "Small dot: start of training, joined to the run's average · dashed box: published as a range (Atari, 7 games) "
        "· ▲: published as a bound (Dota 5v5)"
    )
    if found.published_sweeps:
        marks += f" · ticks at the right edge: B_crit of {len(found.published_sweeps)} published sweeps, whose "
        marks += "noise scale is not"
    said: list[Child] = [html.Span(f"{marks}.")]
    if found.left_out:
        tasks = "1 task is" if len(found.left_out) == 1 else f"{len(found.left_out)} tasks are"
        reasons = [
            html.Li([compare_sentences.left_out_words(task), " ", link("Open sweep", f"/sweeps/{task.sweep_id}")])
            for task in found.left_out
        ]
        summary = html.Summary(f"{tasks} not in the statistics")
        said.append(html.Details([summary, html.Ul(reasons, className="notes said")], className="more"))
    return said


def statistics_table(rows: Sequence[tuple[str, str, str, str]], whose: str) -> html.Table:
    """Rows of `compare_sentences.statistics_rows`; `whose` heads the first column of numbers."""
    head = html.Thead(html.Tr([html.Th(""), *(html.Th(word, scope="col") for word in (whose, "95 %", "Published"))]))
    body = [
        html.Tr([html.Th(what, scope="row"), html.Td(own, className="s"), html.Td(ends), html.Td(theirs)])
        for what, own, ends, theirs in rows
    ]
    return html.Table([head, html.Tbody(body)], className="tb statistics")


def _statistics(found: Comparison) -> html.Div:
    table = statistics_table(compare_sentences.statistics_rows(found), "Yours")
    missing = [note(found.statistics_missing, icon_name="info", quiet=True)] if found.statistics_missing else []
    return html.Div([table, *missing])


def _no_tasks() -> html.Div:
    return note(
        [
            "No sweep has tied a noise scale to a critical batch here. A sweep of one of your tasks takes its place in "
            "this figure: noisescale.sweep(train, [16, 64, 256, 1024], target=0.5), or the lines to paste on ",
            link("Sweeps", "/sweeps", class_name="u"),
            ". ",
        ],
        icon_name="info",
        quiet=True,
    )
