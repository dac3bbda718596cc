"""Whether the learning rate is right: a figure of its own, and a row of the recommendation."""

import asyncio
from collections.abc import Mapping
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.series import RateVerdict
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.over_training import learning_rate_over_training
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import card, figure_box
from noisescale_dashboard.words.number_format import (
    THIN_RANGE,
    chance,
    count,
    rate,
    share,
    share_span,
    significant,
    span,
    unbroken,
)

CARD = "run-rate-card"
CHANGED = (
    Output("run-rate-figure", "data"),
    Output(f"{CARD}-subtitle", "children"),
    Output(f"{CARD}-footer", "children"),
    Output("run-rate-sentence", "children"),
    Output("run-advice-rate", "children"),
)


def rate_card() -> html.Section:
    """How far the rate is from the best one, over training."""
    return card(
        "Learning rate: too low, right or too high",
        "",
        figure_box("run-rate", card_id=CARD, height=learning_rate_over_training.HEIGHT),
        card_id=CARD,
        footer=[],
        is_figure=True,
    )


def row_place() -> html.Div:
    """Where the recommendation says it."""
    return html.Div(id="run-advice-rate")


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the verdict, once a minute while the run goes on."""

    @app.callback(*CHANGED, Input("run-slow-pulse", "data"), State("run-id", "data"), State("narrow", "data"))
    async def load_rate(pulse: float | None, run_id: str, narrow: bool) -> tuple[Any, ...]:
        if pulse is None:
            raise PreventUpdate
        try:
            found = await api.learning_rate(visitor_headers(ctx.headers), run_id)
        except ApiProblem as problem:
            return no_update, f"not loaded: {problem.title}", no_update, no_update, no_update
        figure = await asyncio.to_thread(learning_rate_over_training.learning_rate_over_training, found, narrow=narrow)
        return figure, subtitle(found), unbroken(found.reason), sentence(found), row(found)


def subtitle(found: RateVerdict) -> str:
    """What is drawn, and as of when."""
    drawn = "Rate ÷ best rate, log · band: 95 % · shaded: within a factor 2"
    return drawn if found.step is None else f"{drawn} · at step {count(found.step)}"


def sentence(found: RateVerdict) -> str:
    """The figure in words."""
    return f"{found.headline}." if found.factor is None else f"{found.headline}: {_best(found)}."


async def asked_beside(api: ApiClient, visitor: Mapping[str, str], run_id: str) -> RateVerdict:
    """The verdict for the recommendation, which stands without one where it does not come: the figure says why."""
    try:
        return await api.learning_rate(visitor, run_id)
    except ApiProblem:
        return RateVerdict()


def at_a_glance(found: RateVerdict) -> tuple[Child, Child] | None:
    """That the rate is too low or too high, and the best one with its interval; nothing else has to be seen at once."""
    now, factors = found.learning_rate, (found.factor, found.factor_low, found.factor_high)
    if found.verdict not in ("too_low", "too_high") or now is None:
        return None
    best, low, high = (None if factor is None else rate(float(f"{now * factor:.2g}")) for factor in factors)
    if best is None or low is None or high is None:
        return None
    off = html.B(found.verdict.replace("_", " "))
    return html.Span(["Now ", off, "; best"]), html.Span([html.B(best), f" ({low}{THIN_RANGE}{high})"], className="num")


def row(found: RateVerdict) -> list[Child]:
    """The verdict in a line of the recommendation; nothing where nothing can be said."""
    if found.verdict is None or found.factor is None:
        return []
    word = found.verdict.replace("_", " ")
    odds = "" if found.probability is None else f", {chance(found.probability)} sure"
    # two numbers that may point to opposite sides: one is of the present rate, one of what another batch does to it
    alone = (
        "" if found.verdict == "about_right" else " A rate that goes with another batch starts from the present one."
    )
    return [
        html.Div([html.Span("Learning rate now", className="t2"), html.B(word, className="num")], className="row pair"),
        html.P(unbroken(f"By the path of the parameters: {_best(found)}{odds}.{alone}"), className="dim small"),
        *promise_row(found),
    ]


def promise_row(found: RateVerdict) -> list[Child]:
    """How much of the fall that the updates promised has come; nothing where that is not known."""
    low, high = found.kept_share_low, found.kept_share_high
    if found.kept_share is None or low is None or high is None:
        return []
    came = f"{share(found.kept_share)} ({share_span(low, high)})"
    said = (
        f"Of the fall that the updates of the last half promised to first order, {came} came. Far below the best rate "
        "nearly all of it comes, above it little."
    )
    return [html.P(unbroken(said), className="dim small")]


def _best(found: RateVerdict) -> str:
    times = f"{significant(found.factor, 2)} × the present one"
    if found.learning_rate is not None and found.factor is not None:
        times = f"about {rate(float(f'{found.learning_rate * found.factor:.2g}'))}, {times}"
    return f"the best rate is {times} ({span(found.factor_low, found.factor_high)})"
