"""The cards of a sweep beside its figures: fits and refusals, what to run next, quality at large batch."""

import asyncio
import math
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Interval
from noisescale_dashboard.answers.sweeps import CriticalBatch, Proposal, Quality, SweepPlan, TargetFit
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.sweeps import large_batch_quality
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, figure_box, icon, labelled, note
from noisescale_dashboard.sweeps import figures as sweep_figures
from noisescale_dashboard.sweeps import search as sweep_search
from noisescale_dashboard.sweeps import words as sweep_sentences
from noisescale_dashboard.words.number_format import count, exactly, rate, share, si, significant, span

RATIOS = ("1.1", "1.2", "1.5", "2", "3")
"""Choices of upper ÷ lower end of B_crit's interval."""
CHANGED = (
    Output("sweep-plan", "children"),
    Output("sweep-plan-card-subtitle", "children"),
    Output("sweep-quality-box", "hidden"),
    Output("sweep-quality-words", "children"),
    Output("sweep-next-figures", "data"),
    Output("sweep-quality-sentence", "children"),
)


def layout(*, narrow: bool) -> list[html.Section]:
    """All cards of a sweep in the order of the page."""
    fits = card(
        "Fit",
        "S = S_min (1 + B_crit ÷ B), fitted to log steps",
        html.Div(id="sweep-fit", className="scrollx-in scrolly", tabIndex="0"),
        card_id="sweep-fit-card",
        footer=[],
        class_name="half fit-card",
        has_table=True,
    )
    return [*sweep_figures.cards(narrow=narrow), fits, _quality_card(), _plan_card(), sweep_search.layout()]


def _quality_card() -> html.Section:
    figure = figure_box("sweep-quality", card_id="sweep-quality-card", height=large_batch_quality.HEIGHT)
    key = html.Div(
        [html.Span("■ equal steps"), html.Span("◆ equal examples"), html.Span("● large budget")], className="row key"
    )
    return card(
        "Quality at large batch",
        "Metric minus that of the smallest batch size, same budget · whiskers: 95 %",
        [
            html.Div([key, figure], id="sweep-quality-box", hidden=True),
            html.Div(id="sweep-quality-words", className="words"),
        ],
        card_id="sweep-quality-card",
        class_name="half quality-card",
        is_figure=True,
    )


def _plan_card() -> html.Section:
    wanted = dmc.Select(
        id="sweep-ratio",
        data=[{"value": value, "label": f"Interval × {value}"} for value in RATIOS],
        value="1.5",
        allowDeselect=False,
        size="xs",
        w=140,
        **aria({"aria-label": "Wanted width of the interval, upper over lower end"}),
    )
    return card(
        "Next runs",
        "",
        html.Div(id="sweep-plan", className="scrollx-in", tabIndex="0"),
        card_id="sweep-plan-card",
        actions=wanted,
        class_name="whole plan-card",
        has_table=True,
    )


def register(app: Dash, api: ApiClient) -> None:
    """The callbacks that read plan, quality and the cost of searching once the sweep is shown."""
    sweep_search.register(app, api)

    @app.callback(
        *CHANGED,
        Input("sweep-shown", "data"),
        Input("sweep-ratio", "value"),
        State("sweep-id", "data"),
        State("narrow", "data"),
    )
    async def load_next(
        shown: dict[str, Any] | None, ratio: str | None, sweep_id: str, narrow: bool
    ) -> tuple[Any, ...]:
        if not shown or shown["kind"] != "sweep":
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        asked = {"target": shown["target"], "ratio": float(ratio or 1.5)}
        plan, quality = await asyncio.gather(
            api.sweep_plan(visitor, sweep_id, asked), api.sweep_quality(visitor, sweep_id), return_exceptions=True
        )
        return (*_planned(plan, shown["unit"]), *_qualities(quality, unit=shown["unit"], narrow=narrow))


def _planned(plan: SweepPlan | BaseException, unit: str) -> tuple[Any, Any]:
    if isinstance(plan, ApiProblem):
        return no_update, f"not loaded: {plan.title}"
    if isinstance(plan, BaseException):
        raise plan
    return plan_table(plan, unit), sweep_sentences.plan_words(plan)


def _qualities(found: tuple[Quality, ...] | BaseException, *, unit: str, narrow: bool) -> tuple[Any, ...]:
    if isinstance(found, ApiProblem):
        return True, f"not loaded: {found.title}", no_update, no_update
    if isinstance(found, BaseException):
        raise found
    if not found:
        return True, "Fewer than two batch sizes have curves to compare.", no_update, no_update
    figure = large_batch_quality.large_batch_quality(found, unit=unit, narrow=narrow)
    words = [_verdict(one) for one in found]
    return False, words, {"quality": figure}, " ".join(one.explanation for one in found)


def _verdict(one: Quality) -> html.P:
    budget = large_batch_quality.BUDGET_WORDS.get(one.budget, one.budget)
    at = f" ({si(one.at)})" if one.at is not None else ""
    return html.P(
        [html.B(f"{budget[:1].upper()}{budget[1:]}{at}: {one.verdict}. "), sweep_sentences.true_minus(one.explanation)],
        className="t2 small",
    )


FIT_COLUMNS = ("Target", "S_min", "E_min", "B_crit", "95 %", "rms", "n")


def fit_table(found: CriticalBatch, chosen: TargetFit) -> html.Table:
    """A row a target: steps, examples, B_crit with its interval, misfit, number of batch sizes; or why not."""
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in FIT_COLUMNS]))
    rows = [_fit_row(one, is_chosen=one is chosen) for one in found.targets]
    return html.Table([head, html.Tbody(rows)], className="tb fold")


def _fit_row(one: TargetFit, *, is_chosen: bool) -> html.Tr:
    name = html.B(exactly(one.target)) if is_chosen else exactly(one.target)
    if one.fit is None:
        return _refused_row(one, name)
    fit = one.fit
    cells = [
        html.Td(name),
        html.Td(si(fit.min_steps.value), title=_between(fit.min_steps)),
        html.Td(si(fit.min_examples.value), title=_between(fit.min_examples)),
        html.Td(significant(fit.critical_batch.value), className="s"),
        html.Td([sweep_sentences.between_words(one), *_doubt(one)], className="t2"),
        html.Td(share(fit.rms)),
        html.Td(count(one.num_reached)),
    ]
    return html.Tr(labelled(cells, FIT_COLUMNS), className="chosen" if is_chosen else "")


def _doubt(one: TargetFit) -> list[html.Span]:
    words = sweep_sentences.doubt_words(one)
    return [html.Span(words, className="between")] if words else []


def _refused_row(one: TargetFit, name: Child) -> html.Tr:
    refusal = one.refusal
    bounds = [("S_min", refusal.min_steps), ("E_min", refusal.min_examples)] if refusal is not None else []
    cells = [html.Td(_bound(found)) for _, found in bounds] or [html.Td("–"), html.Td("–")]
    why = sweep_sentences.reason_words(refusal) if refusal is not None else "–"
    cells = [
        html.Td(name),
        *cells,
        html.Td(sweep_sentences.found_words(one), className="dim"),
        html.Td(why, className="dim", colSpan=2),
        html.Td(count(one.num_reached)),
    ]
    return html.Tr(labelled(cells, (*FIT_COLUMNS[:4], "no fit:", FIT_COLUMNS[-1])))


def _between(found: Interval) -> str:
    return f"{span(found.low, found.high)}, 95 %"


def _bound(found: Interval) -> str:
    if found.low is not None and found.high is not None:
        return f"{si(found.low, 2)} – {si(found.high, 2)}"
    if found.low is not None:
        return f"> {si(found.low)}"
    return f"< {si(found.high)}" if found.high is not None else "–"


def fit_footer(target: TargetFit) -> Sequence[Child]:
    """What speaks against the chosen target's fit, or why there is none."""
    if target.refusal is not None:
        return [note(sweep_sentences.true_minus(target.refusal.explanation), icon_name="info", quiet=True)]
    if target.fit is None:
        return []
    words = [sweep_sentences.turn_words(target.fit), *sweep_sentences.lack_of_fit_words(target.fit.lack_of_fit)]
    words = [one for one in words if one]
    if sweep_sentences.has_findings(target) or target.fit.turn is not None:
        return [note(" ".join(words))]
    return [icon("check", "sm"), html.Span(" ".join(words))]


PLAN_COLUMNS = ("Batch size", "Learning rates", "Seeds", "Steps each, at most", "Examples, at most", "Why")


def plan_table(plan: SweepPlan, unit: str) -> Child:
    """A row a proposal with its cost; in words where there is nothing to run."""
    if not plan.proposals:
        is_met = plan.present_ratio is not None and plan.present_ratio <= plan.wanted_ratio
        return html.P("No further runs are needed for this interval." if is_met else "", className="t2")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in PLAN_COLUMNS]))
    rows = [_proposal_row(one) for one in plan.proposals]
    total = html.Tr(
        [
            html.Td("Together"),
            *[html.Td("") for _ in range(3)],
            *labelled([html.Td(f"{si(plan.examples)} {unit[:20]}", className="s")], PLAN_COLUMNS[4:5]),
            html.Td(""),
        ]
    )
    return html.Table([head, html.Tbody([*rows, total])], className="tb plan fold")


def _proposal_row(one: Proposal) -> html.Tr:
    words = [
        count(one.batch_size),
        ", ".join(rate(lr) for lr in one.learning_rates),
        count(one.num_seeds),
        si(math.ceil(one.steps)),
        si(one.examples),
        one.reason,
    ]
    return html.Tr(labelled([html.Td(word) for word in words], PLAN_COLUMNS))
