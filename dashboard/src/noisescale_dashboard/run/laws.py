"""The cards of a run that rest on theory: its place on the trade-off curve, its noise scale against the loss."""

import asyncio
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.laws import Forecast
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.comparison import noise_scale_against_loss
from noisescale_dashboard.figures.planning import trade_off_position
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.parts import card, figure_box
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import count, exactly, significant

GRAPHS = ("against",)
CHANGED = (
    Output("run-law-figures", "data"),
    Output("run-against-card-subtitle", "children"),
    Output("run-against-card-footer", "children"),
    Output("run-against-sentence", "children"),
)


def trade_off_card() -> html.Section:
    """Where the batch lies between fewest steps and fewest examples."""
    return card(
        "On the trade-off curve",
        "Examples ÷ E_min, log–log, same loss · predicted",
        figure_box("run-tradeoff", card_id="run-tradeoff-card", height=trade_off_position.HEIGHT),
        card_id="run-tradeoff-card",
        footer=[],
        is_figure=True,
    )


def against_loss_card() -> html.Section:
    """The noise scale over the loss with the law through it."""
    return card(
        "Noise scale against loss",
        "",
        figure_box("run-against", card_id="run-against-card", height=noise_scale_against_loss.HEIGHT),
        card_id="run-against-card",
        footer=[],
        is_figure=True,
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the law, once a minute while the run goes on."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "slowPulse"),
        Output("run-slow-pulse", "data"),
        Input("run-pulse", "data"),
        # of a run that has ended there is no pulse, and what waits for it alone would never begin
        Input("run-id", "data"),
        State("run-slow-pulse", "data"),
    )

    @app.callback(*CHANGED, Input("run-slow-pulse", "data"), State("run-id", "data"), State("narrow", "data"))
    async def load_law(pulse: float | None, run_id: str, narrow: bool) -> tuple[Any, ...]:
        if pulse is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run, found = await asyncio.gather(api.run(visitor, run_id), api.run_forecast(visitor, run_id))
        except ApiProblem as problem:
            return no_update, f"not loaded: {problem.title}", no_update, no_update
        noun = sentences.noun_of(run)
        figure = noise_scale_against_loss.noise_scale_against_loss(found, noun=noun, narrow=narrow)
        return {"against": figure}, subtitle(found, noun), footer(found), sentence(found, noun)


def subtitle(found: Forecast, noun: str) -> str:
    """What is drawn."""
    law = " · line: law with 95 % band, dotted: forecast" if found.curve else ""
    return f"{noun.capitalize()}, log · resolved windows{law}"


def footer(found: Forecast) -> str:
    """What the law says, what was left out, what to know before relying on it; or why there is none."""
    left_out = [
        f"One window {why} is left out." if number == 1 else f"{count(number)} windows {why} are left out."
        for number, why in ((found.num_unresolved, "not resolved"), (found.num_cold, "at a decayed learning rate"))
        if number
    ]
    return " ".join(part for part in (found.reason or found.law.explanation, *left_out) if part)


def sentence(found: Forecast, noun: str) -> str:
    """The figure in words."""
    if not found.observed:
        return "No resolved window yet."
    highest, lowest = max(found.observed, key=lambda one: one.x), min(found.observed, key=lambda one: one.x)
    said = (
        f"Noise scale {significant(highest.value)} {noun} at loss {significant(highest.x)}, "
        f"{significant(lowest.value)} at loss {significant(lowest.x)}."
    )
    power = found.power.value
    return f"{said} It goes as the loss to the power {exactly(float(f'{power:.3g}'))}." if power is not None else said


def position_footer(advice: Recommendation) -> str | None:
    """What the broad stretch is and by what the places go; why no batch stands on the curve, where none does."""
    if advice.critical_batch.value is None:
        return "The noise scale is not resolved, so the batch has no place on the curve yet."
    stretch = "Thick line: where this run may be (95 %)"
    kappa = advice.calibration.kappa.value
    return (
        f"{stretch}."
        if kappa in (None, 1)
        else f"{stretch}; critical batch: {significant(kappa)} × the noise scale (κ)."
    )


def position_sentence(advice: Recommendation) -> str:
    """The figure in words."""
    critical, now = advice.critical_batch.value, advice.current_batch_size
    if not critical or not now:
        return "The place on the trade-off curve is not known yet."
    return (
        f"The batch of {count(now)} takes {significant(1 + critical / now)} times the fewest steps and "
        f"{significant(1 + now / critical)} times the fewest examples."
    )
