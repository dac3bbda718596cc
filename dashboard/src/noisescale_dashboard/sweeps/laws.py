"""What runs through a sweep beyond its own points: learning rates over batch sizes, B_crit over targets."""

import asyncio
from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.laws import Claim, Forecast, LearningRates
from noisescale_dashboard.answers.sweeps import CriticalBatch
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.sweeps import best_learning_rates, critical_batch_against_target
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.sweeps import words as sweep_sentences
from noisescale_dashboard.words.number_format import count, exactly, rate, significant, span

GRAPHS = ("rates", "targets")
CHANGED = (
    Output("sweep-law-figures", "data"),
    Output("sweep-rates-card-footer", "children"),
    Output("sweep-rates-sentence", "children"),
    Output("sweep-targets-card-footer", "children"),
)
VERDICTS = {True: "holds", False: "does not hold", None: "cannot be told here"}
COUNTED = {True: ("holds", "hold"), False: ("does not", "do not"), None: ("cannot be told", "cannot be told")}


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads them once the sweep is shown."""

    @app.callback(*CHANGED, Input("sweep-shown", "data"), State("sweep-id", "data"), State("narrow", "data"))
    async def load_laws(shown: dict[str, Any] | None, sweep_id: str, narrow: bool) -> tuple[Any, ...]:
        if not shown or shown["kind"] != "sweep":
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        rates, found, forecast = await asyncio.gather(
            _or_problem(api.learning_rates(visitor, sweep_id, {"target": shown["target"]})),
            _or_problem(api.critical_batch(visitor, sweep_id)),
            _or_problem(api.sweep_forecast(visitor, sweep_id)),
        )
        drawn_rates, *said = _shown_rates(rates, narrow=narrow)
        drawn_law, words = _shown_law(found, forecast, narrow=narrow)
        return (drawn_rates | drawn_law or no_update, *said, words)


def _shown_rates(found: LearningRates | ApiProblem, *, narrow: bool) -> tuple[dict[str, Any], Any, Any]:
    if isinstance(found, ApiProblem):
        return {}, f"not loaded: {found.title}", no_update
    figure = best_learning_rates.best_learning_rates(found, narrow=narrow)
    return {"rates": figure}, rates_footer(found), rates_sentence(found)


def _shown_law(
    found: CriticalBatch | ApiProblem, forecast: Forecast | ApiProblem, *, narrow: bool
) -> tuple[dict[str, Any], Any]:
    if isinstance(found, ApiProblem):
        return {}, f"not loaded: {found.title}"
    law = Forecast(reason=forecast.detail) if isinstance(forecast, ApiProblem) else forecast
    figure = critical_batch_against_target.critical_batch_against_target(
        found.targets,
        goal=found.goal,
        unit=found.unit,
        metric=sweep_sentences.metric_words(found.metric),
        narrow=narrow,
        law=law.curve,
    )
    return {"targets": figure}, law_footer(law)


async def _or_problem(asked: Any) -> Any:
    try:
        return await asked
    except ApiProblem as problem:
        return problem


def rates_footer(found: LearningRates) -> Sequence[Child]:
    """Which curve, what to know before using it, and, opened, what theory claims of it."""
    said = html.Ul([html.Li(words) for words in (found.explanation, *found.warnings) if words], className="notes said")
    if not found.claims:
        return [said]
    verdicts = [claim.holds for claim in found.claims]
    numbers = {holds: verdicts.count(holds) for holds in COUNTED}
    counted = [f"{number} {COUNTED[holds][number > 1]}" for holds, number in numbers.items() if number]
    claims = html.Ul([html.Li(claim_words(claim)) for claim in found.claims], className="notes said")
    opening = html.Summary(f"Claims of theory: {', '.join(counted)}")
    return [said, html.Details([opening, claims], className="more")]


def claim_words(claim: Claim) -> str:
    """A claim, the number that it is about, and whether it holds."""
    known = claim.estimate
    number = ""
    if known.value is not None:
        number = f": {significant(known.value)}"
        number += f", {span(known.low, known.high)}" if known.low is not None and known.high is not None else ""
    return f"{claim.text.rstrip('.')}: {VERDICTS[claim.holds]}{number}."


def rates_sentence(found: LearningRates) -> str:
    """The figure of learning rates in words."""
    said = [f"{rate(best.lr)} at batch {count(best.batch_size)}" for best in found.rates]
    return f"Best learning rates: {', '.join(said)}." if said else "No learning rates."


def law_footer(law: Forecast) -> str | None:
    """The law in words, and what to know of its forecast; or why there is none."""
    if not law.curve:
        return law.reason
    power = law.power
    # "to" and not a dash between numbers that have signs
    is_bounded = power.low is not None and power.high is not None
    ends = f" ({significant(power.low)} to {significant(power.high)})" if is_bounded else ""
    first = (
        f"B_crit goes as the target to the power {exactly(float(f'{power.value:.3g}'))}{ends}." if power.value else ""
    )
    return " ".join(part for part in (first, law.law.explanation, *(one.text for one in law.warnings)) if part)
