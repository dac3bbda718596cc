"""What has happened to runs lately: resolved estimates, crossings, changed batches, stalls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from dash import html

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.series import Event, ShortSeries
from noisescale_dashboard.figures.parts.labels import event_words
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import icon, link
from noisescale_dashboard.words.names import short_names
from noisescale_dashboard.words.number_format import count, si, significant
from noisescale_dashboard.words.sentences import short_noun_of, state_of

NAME_LIMIT = 30
STATUS_WORDS = {
    "silent": ("clock", "No data for a minute"),
    "crashed": ("warn", "No data for ten minutes"),
    "failed": ("warn", "Failed"),
    "finished": ("check", "Finished"),
    "diverged": ("warn", "Diverged: loss or gradients not finite"),
}
JUST_NOW_SECONDS = 120
MINUTE, HOUR, DAY = 60, 3_600, 86_400
MOST_EARLIER = 60
"""That are folded away; older ones stand on the pages of their runs."""


@dataclass(frozen=True, slots=True)
class Happening:
    """One event: when (seconds since 1970), what, and of which run."""

    at: float
    icon: str
    words: str
    detail: str
    run: Run


def happenings(run: Run, series: ShortSeries | None) -> list[Happening]:
    """Events of one run, in no order; of each kind the last one."""
    found = []
    state = state_of(run)
    if state in STATUS_WORDS:
        name, words = STATUS_WORDS[state]
        at = datetime.fromisoformat(run.finished_at or run.updated_at).timestamp()
        found.append(Happening(at, name, words, _since(run), run))
    if series is not None:
        found += [*_first_resolved(run, series), *_last_crossing(run, series), *_changes(run, series)]
    return found


def _since(run: Run) -> str:
    if run.divergence is not None:
        return f"since step {si(run.divergence.step)}"
    return "no step" if run.last_step is None else f"last step {si(run.last_step)}"


def _first_resolved(run: Run, series: ShortSeries) -> Iterator[Happening]:
    points = series.points
    for i, state in enumerate(points.state):
        at, value = points.wall_time[i], points.value[i]
        if state == "resolved" and at is not None:
            # a series that begins resolved says nothing about when that happened
            if i and value is not None:
                said = f"{significant(value)} {short_noun_of(run)}, about step {si(points.step[i])}"
                yield Happening(at, "check", "Noise scale first resolved", said, run)
            return


@dataclass(frozen=True, slots=True)
class _Moment:
    at: float
    step: int
    value: float
    batch: float


def _last_crossing(run: Run, series: ShortSeries) -> Iterator[Happening]:
    known = list(_resolved_moments(series))
    crossings = [
        after
        for before, after in pairwise(known)
        if before.batch == after.batch and (before.value > before.batch) != (after.value > after.batch)
    ]
    if crossings:
        last = crossings[-1]
        side = "rose above" if last.value > last.batch else "fell below"
        said = f"batch {count(last.batch)}, about step {si(last.step)}"
        yield Happening(last.at, "info", f"Noise scale {side} the batch", said, run)


def _resolved_moments(series: ShortSeries) -> Iterator[_Moment]:
    points = series.points
    rows = zip(points.state, points.wall_time, points.step, points.value, points.global_batch, strict=True)
    for state, at, step, value, batch in rows:
        if state == "resolved" and at is not None and value is not None and batch:
            yield _Moment(at, step, value, batch)


def _changes(run: Run, series: ShortSeries) -> Iterator[Happening]:
    last: dict[str, Event] = {event.kind: event for event in series.events}
    for event in last.values():
        at = _moment(series, event.step)
        if at is None:
            continue
        words, name = event_words(event), "info"
        words = words[:1].upper() + words[1:]
        if event.kind == "batch" and event.before and event.after:
            is_raised = event.after > event.before
            name = "up" if is_raised else "down"
            words = f"Batch {'raised' if is_raised else 'lowered'} {count(event.before)} → {count(event.after)}"
        yield Happening(at, name, words, f"step {si(event.step)}", run)


def _moment(series: ShortSeries, step: int) -> float | None:
    points = series.points
    return next((at for at, there in zip(points.wall_time, points.step, strict=True) if there >= step and at), None)


def listed(found: Sequence[Happening], *, now: float, at_most: int) -> Child:
    """The newest events, newest first."""
    newest = _newest_first(found)[:at_most]
    if not newest:
        return html.P("Nothing has happened in these runs yet.", className="t2")
    return _list(newest, now=now)


def earlier(found: Sequence[Happening], *, now: float, after: int) -> Child | None:
    """What stands behind the newest ones, folded away; None where they are all."""
    older = _newest_first(found)[after:]
    if not older:
        return None
    return html.Details([html.Summary(f"{len(older)} earlier"), _list(older[:MOST_EARLIER], now=now)])


def _newest_first(found: Sequence[Happening]) -> list[Happening]:
    return sorted(found, key=lambda one: -one.at)


def _list(newest: Sequence[Happening], *, now: float) -> html.Ul:
    short = short_names([one.run.name for one in newest], at_most=NAME_LIMIT)
    return html.Ul([_item(one, name, now=now) for one, name in zip(newest, short, strict=True)], className="events")


def _item(one: Happening, name: str, *, now: float) -> html.Li:
    return html.Li(
        [
            icon(one.icon),
            html.Div(
                [
                    html.Div(one.words, className="what"),
                    html.Div(
                        [link(name, f"/runs/{one.run.id}", title=one.run.name), f" · {one.detail}"],
                        className="small t2",
                    ),
                ]
            ),
            html.Span(age_words(now - one.at), className="dim small nb"),
        ],
        **aria({"data-run": one.run.id}),
    )


def age_words(seconds: float) -> str:
    """How long ago, in whole units: "just now", "12 min ago", "11 h ago", "5 days ago"."""
    if seconds < JUST_NOW_SECONDS:
        return "just now"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min ago"
    return f"{seconds / HOUR:.0f} h ago" if seconds < 2 * DAY else f"{seconds / DAY:.0f} days ago"
