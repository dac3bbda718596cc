"""The data behind the first page: the noise scale over training as a table, and what arrived of it."""

import math
from dataclasses import replace

from dash import html

from noisescale_dashboard.answers.series import Points
from noisescale_dashboard.report.cautions import in_full
from noisescale_dashboard.report.reading import Reported
from noisescale_dashboard.run import recommendation_schedule
from noisescale_dashboard.run import records as run_records
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import NOTHING, count, rate, si, significant, span

MAX_STREAMS, MAX_STAGES = 5, 4
MAX_ROWS, LEAST_ROWS = 44, 18
"""Rows of data that fill the page alone, and that stand on it beside anything."""
LINE = 100
"""Characters of a line of cautions."""


def second_page(found: Reported) -> list[Child]:
    """Everything between the head and the foot of the second page."""
    points, cautions, schedule = _ending_in_latest(found), in_full(found), _schedule(found)
    every = _every(len(points.step), _room(found, cautions, has_schedule=bool(schedule)))
    parts: list[Child] = [html.H2("Noise scale over training"), html.P(_about(found, every), className="small")]
    parts.append(_table(points, every) if points.step else html.P("No measurement has arrived yet."))
    parts.append(_records(found))
    parts += schedule
    if cautions:
        parts.append(html.Section([html.H2("Cautions in full"), html.Ul([html.Li(text) for text in cautions])]))
    return parts


def _ending_in_latest(found: Reported) -> Points:
    """The points of the figure; the last is the latest window, on which the first page rests, as there."""
    points, latest = found.series.points, found.series.latest
    if not points.step or points.step[-1] != found.run.last_step:
        return points
    return replace(
        points,
        value=(*points.value[:-1], latest.value),
        low=(*points.low[:-1], latest.low),
        high=(*points.high[:-1], latest.high),
        state=(*points.state[:-1], latest.state),
    )


def _schedule(found: Reported) -> list[Child]:
    planned = found.advice.schedule
    if planned is None or len(planned.stages) < 2:
        return []
    left_out = len(planned.stages) - MAX_STAGES
    shown = replace(found.advice, schedule=replace(planned, stages=planned.stages[:MAX_STAGES]))
    more = [html.P(f"{left_out} later stages are not shown.", className="small")] if left_out > 0 else []
    return [html.Section([*recommendation_schedule.schedule(shown), *more])]


def _room(found: Reported, cautions: list[str], *, has_schedule: bool) -> int:
    """Rows of data for which the page has room beside everything else on it."""
    stages = 0 if found.advice.schedule is None or not has_schedule else len(found.advice.schedule.stages[:MAX_STAGES])
    taken = sum(1 + len(text) // LINE for text in cautions) + (2 if cautions else 0)
    taken += (6 + 2 * stages if has_schedule else 0) + 2 * len(found.streams[:MAX_STREAMS])
    return max(LEAST_ROWS, MAX_ROWS - taken)


def _about(found: Reported, every: int) -> str:
    noun, window = sentences.noun_of(found.run), found.series.window_steps
    said = f"Measured. Noise scale and batch in {noun}, intervals 95 %, “>” a lower bound where it is not resolved."
    which = f"Every {sentences.ordinal(every)} point of the figure" if every > 1 else "The points of the figure"
    over = f", each over the {count(window)} steps before it" if window else ""
    return f"{said} {which}{over}; the last one is the latest window."


def _every(num_points: int, most: int) -> int:
    return max(1, math.ceil(num_points / most))


def _table(points: Points, every: int) -> html.Div:
    words = ("Step", "examples", "noise scale", "95 % interval", "state", "batch", "loss", "learning rate")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    last = len(points.step) - 1
    shown = reversed(range(last, -1, -every))
    rows = [html.Tr(_cells(points, number)) for number in shown]
    table = html.Table([head, html.Tbody(rows)], className="tb data")
    # on a phone it scrolls, with a keyboard too
    return html.Div(
        table, className="scroll", tabIndex="0", role="region", **aria({"aria-label": "Noise scale over training"})
    )


def _cells(points: Points, number: int) -> list[html.Th | html.Td]:
    value, low = points.value[number], points.low[number]
    shown = significant(value) if value is not None else f"> {significant(low)}" if low is not None else NOTHING
    between = span(low, points.high[number]) if value is not None else NOTHING
    cells = (
        si(_at(points.examples, number)),
        shown,
        between,
        "not resolved" if points.state[number] == "unresolved" else points.state[number],
        count(_at(points.global_batch, number)),
        significant(_at(points.loss, number), 4),
        rate(_at(points.lr, number)),
    )
    return [html.Th(count(points.step[number]), scope="row"), *(html.Td(cell) for cell in cells)]


def _at(column: tuple[float | None, ...], number: int) -> float | None:
    # a column that the server does not send is empty
    return column[number] if number < len(column) else None


def _records(found: Reported) -> html.Section:
    sentence = sentences.ledger_sentence(found.streams)[1]
    shown = found.streams[:MAX_STREAMS]
    left_out = len(found.streams) - len(shown)
    more = [html.P(f"{left_out} more processes are not shown.", className="small")] if left_out else []
    table = [run_records.ledger_table(shown)] if shown else []
    losses = [html.P(words, className="small") for words in run_records.losses(shown)]
    return html.Section([html.H2("Records"), html.P(sentence), *table, *losses, *more])
