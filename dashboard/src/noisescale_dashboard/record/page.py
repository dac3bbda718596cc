"""How often were we right here? Stated odds against what came true, by the sweeps of this server."""

from collections.abc import Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from noisescale_dashboard.answers.record import AdviceRecord, AtShare, Bin
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.comparison import odds_against_outcomes
from noisescale_dashboard.shell import shell, states
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, figure_box, icon, link
from noisescale_dashboard.words.number_format import NOTHING, count, share, share_span

TITLE = "How often were we right here?"
CARD = "record-odds"
NOTHING_YET = (
    "No sweep with stored runs has been fitted here yet. A sweep tells what the best batch was, and so whether the "
    "advice of its runs was right: run one with noisescale.sweep()."
)
LEDE = (
    "Runs of sweeps that were fitted, advised as they would have been without the sweep, at prices of a step from a "
    "sixteenth of the critical batch to 16 times it."
)
HEADS = ("Of the plan", "Answers", "Decided", "Of these right", "Recommended", "Kept", "B = price")
CHANGED = (
    Output("record-figures", "data"),
    Output("record-sentence", "children"),
    Output("record-body", "hidden"),
    Output("record-empty", "children"),
    Output("record-table", "children"),
    Output(f"{CARD}-figure-sentence", "children"),
)


def layout(*, narrow: bool, refresh_seconds: float) -> list[Child]:
    """The page before its first data; nothing on it changes by itself."""
    del refresh_seconds
    height = odds_against_outcomes.NARROW_HEIGHT if narrow else odds_against_outcomes.HEIGHT
    odds = card(
        "Odds as said, and what came true",
        "Share of the changes that were cheaper · bars: 95 % interval as if answers were independent · line: honest",
        figure_box(f"{CARD}-figure", card_id=CARD, height=height),
        card_id=CARD,
        is_figure=True,
    )
    shares = card(
        "As a run goes on",
        "Decided: raise, lower or keep · costs: median above the best batch",
        html.Div(id="record-table", className="scrollx-in", tabIndex="0"),
        card_id="record-shares",
        has_table=True,
    )
    body = [
        html.H1(TITLE, className="h1"),
        html.P(LEDE, id="record-sentence", className="lede mb12"),
        html.Div(id="record-empty"),
        html.Div([odds, shares], id="record-body", className="grid cols two"),
        dcc.Store(id="record-asked", data=1),
        dcc.Store(id="record-figures"),
    ]
    crumbs = [link("Sweeps", "/sweeps"), icon("chevr", "xs"), html.Span(TITLE, className="crumb-end")]
    return shell.page(crumbs, body)


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the record once the page is open."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "paintAll"),
        [Output(f"{CARD}-figure", "figure")],
        Input("record-figures", "data"),
        Input("theme", "data"),
        State("palettes", "data"),
    )

    @app.callback(*CHANGED, Input("record-asked", "data"), State("narrow", "data"))
    async def load_record(_asked: int | None, narrow: bool) -> tuple[Any, ...]:
        try:
            found = await api.hindsight(visitor_headers(ctx.headers))
        except ApiProblem as problem:
            return no_update, LEDE, True, states.not_loaded(problem), no_update, no_update
        if not found.num_runs:
            return no_update, LEDE, True, html.P(NOTHING_YET, className="t2"), no_update, no_update
        figure = odds_against_outcomes.odds_against_outcomes(found.bins, narrow=narrow)
        return {"odds-figure": figure}, f"{headline(found)} {LEDE}", False, None, table(found.records), sentence(found)


def headline(found: AdviceRecord) -> str:
    """How many runs, and how the surest odds came true."""
    runs = f"{count(found.num_runs)} run{'' if found.num_runs == 1 else 's'}"
    if not found.bins:
        return f"{runs} could be judged; no change had odds of 50 % or more."
    surest = found.bins[-1]
    changes = f"{count(surest.num_answers)} change{'' if surest.num_answers == 1 else 's'}"
    return f"{runs}: of {changes} said to be cheaper with {share(surest.said)}, {_came_true(surest)} were."


def sentence(found: AdviceRecord) -> str:
    """The figure in words."""
    return "; ".join(f"said {share(one.said)}, came true {_came_true(one)}" for one in found.bins)


def _came_true(one: Bin) -> str:
    return f"{share(one.came_true)} ({share_span(one.came_true_low, one.came_true_high)})"


def table(records: Sequence[AtShare]) -> html.Table:
    """A row for each share of the plan."""
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in HEADS]))
    return html.Table([head, html.Tbody([_row(one) for one in records])], className="tb")


def _row(one: AtShare) -> html.Tr:
    cells = (
        count(one.num_answers),
        share(one.decided),
        NOTHING if one.right is None else share(one.right),
        *(f"+{share(cost)}" for cost in (one.regret, one.regret_kept, one.regret_of_price)),
    )
    return html.Tr([html.Th(share(one.share), scope="row"), *(html.Td(cell, className="num") for cell in cells)])
