"""Runs whose batch changed that are held against a sweep: what each says of κ, or why it says nothing."""

from dash import html

from noisescale_dashboard.answers.sweeps import FollowedRun, Sweep
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, labelled, link
from noisescale_dashboard.words.number_format import count, significant

TITLE = "Runs that followed"
SUBTITLE = "finished runs of this task whose batch changed on the way to the target of this sweep"
COLUMNS = ("Run", "Steps", "κ", "95 %")


def changes(sweep: Sweep) -> dict[str, Child | None]:
    """What the callback of the page sets of it: the card, and none where no run is held against the sweep."""
    return {"sweep-followed.children": _card(sweep.followed) if sweep.followed else None}


def _card(runs: tuple[FollowedRun, ...]) -> html.Section:
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in COLUMNS]))
    table = html.Table([head, html.Tbody([_row(one) for one in runs])], className="tb fold")
    return card(
        TITLE,
        SUBTITLE,
        html.Div(table, className="scrollx-in", tabIndex="0"),
        card_id="sweep-followed-card",
        class_name="mt16",
        has_table=True,
    )


def _row(one: FollowedRun) -> html.Tr:
    name = one.name if one.run_id is None else link(one.name, f"/runs/{one.run_id}")
    known = one.kappa
    cells = [
        html.Td(name),
        html.Td("–" if one.steps is None else count(one.steps)),
        html.Td(_value(one), className="s" if known is not None and known.value is not None else "dim"),
        html.Td(_interval(one), className="t2"),
    ]
    return html.Tr(labelled(cells, COLUMNS))


def _value(one: FollowedRun) -> str:
    if one.kappa is None:
        return "says nothing"
    return "a bound" if one.kappa.value is None else significant(one.kappa.value)


def _interval(one: FollowedRun) -> str:
    """The interval, the bound that is left, or why there is none."""
    known = one.kappa
    if known is None or (known.low is None and known.high is None):
        return one.missing or "–"
    if known.low is None or known.high is None:
        return f"above {significant(known.low)}" if known.low is not None else f"below {significant(known.high or 0.0)}"
    return f"{significant(known.low)} – {significant(known.high)}"
