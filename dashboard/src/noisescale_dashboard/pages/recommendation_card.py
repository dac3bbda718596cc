"""The card that says which batch size to use, what it buys, and how sure that is."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import sentences
from noisescale_dashboard.advice import Recommendation
from noisescale_dashboard.answers import Run
from noisescale_dashboard.api_client import ApiClient
from noisescale_dashboard.api_transport import ApiProblem, visitor_headers
from noisescale_dashboard.decisions import CHANGES
from noisescale_dashboard.figures import batch_bullet, trade_off_position
from noisescale_dashboard.number_format import (
    count,
    duration,
    money,
    rate,
    share,
    share_span,
    significant,
    span,
    unbroken,
)
from noisescale_dashboard.pages import (
    plan_limits,
    recommendation_schedule,
    recommendation_table,
    report_address,
    run_laws,
    run_overview,
    run_rate,
)
from noisescale_dashboard.pages.parts import (
    DECISION_ICONS,
    DECISION_STYLES,
    TABLE_ACTIONS,
    Child,
    aria,
    card_menu,
    figure_box,
    icon,
    link,
    note,
    preference_slider,
)
from noisescale_dashboard.pages.still import Still
from noisescale_dashboard.planner_answers import Limit

CARD = "run-advice"
CHANGED = (
    Output("run-bullet-figure", "data"),
    Output("run-advice-top", "children"),
    Output("run-advice-bottom", "children"),
    Output("run-advice-bullet", "hidden"),
    Output("run-advice-chip", "children"),
    Output("run-advice-subtitle", "children"),
    Output("run-pref-word", "children"),
    Output("run-pref-left", "children"),
    Output("run-bullet-sentence", "children"),
    Output("run-answer", "children"),
    Output("run-tradeoff-figure", "data"),
    Output("run-tradeoff-card-footer", "children"),
    Output("run-tradeoff-sentence", "children"),
    Output("run-advice-schedule", "children"),
    Output("run-advice-copy", "hidden"),
    Output("run-advice-rescaling", "children"),
    Output("run-advice-rescaling-fold", "hidden"),
    *(Output(link, "href") for link in report_address.LINKS),
    Output("run-planner", "href"),
    Output("run-waste", "data"),
)


def layout() -> html.Section:
    """The card before its first data; the slider stays when the rest is replaced."""
    head = html.Div(
        [
            html.Div(
                [
                    html.H2("Recommendation", className="tt", id=f"{CARD}-title"),
                    html.Div(id=f"{CARD}-subtitle", className="st"),
                ]
            ),
            html.Div(html.Span(id=f"{CARD}-chip"), className="ac"),
            card_menu(TABLE_ACTIONS, CARD),
        ],
        className="hd",
    )
    body = html.Div(
        [
            html.Div(id=f"{CARD}-top"),
            html.Div(
                [
                    figure_box("run-bullet", card_id=CARD, height=batch_bullet.HEIGHT),
                    preference_slider("run", html.Span(id="run-pref-left")),
                ],
                id=f"{CARD}-bullet",
                hidden=True,
            ),
            html.Div(id=f"{CARD}-bottom"),
            run_rate.row_place(),
            recommendation_schedule.layout(),
            plan_limits.layout(),
            html.P(report_address.link("run-advice-report"), className="section"),
        ],
        className="bd",
    )
    return html.Section([head, body], className="card rec", **aria({"aria-labelledby": f"{CARD}-title"}))


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the advice at the chosen preference or price and inside the limits."""
    plan_limits.register(app)
    recommendation_schedule.register(app, api)

    @app.callback(
        *CHANGED,
        *plan_limits.REFUSED,
        Input("run-pref-view", "data"),
        Input("run-news", "data"),
        State("run-id", "data"),
        State("narrow", "data"),
    )
    async def load_recommendation(
        view: Mapping[str, Any] | None, _pulse: float | None, run_id: str, narrow: bool
    ) -> tuple[Any, ...]:
        if view is None:
            raise PreventUpdate
        visitor, limits = visitor_headers(ctx.headers), plan_limits.asked(view)
        try:
            run, advice, allowed = await asyncio.gather(
                api.run(visitor, run_id),
                api.recommendation(visitor, run_id, view["pref"], limits),
                plan_limits.allowed(api, visitor, run_id, view),
            )
        except ApiProblem as problem:
            is_refused = problem.status == 422 and bool(limits)
            return _unchanged("not planned: see the limits" if is_refused else f"not loaded: {problem.title}") + (
                plan_limits.refusal(problem) if is_refused else (no_update,) * len(plan_limits.REFUSED)
            )
        return _shown(advice, run, view, allowed, narrow=narrow) + plan_limits.refusal(None)


def _unchanged(subtitle: str) -> tuple[Any, ...]:
    """What is already shown stays, beside a line in both cards that says why."""
    said = (f"{CARD}-subtitle", "run-tradeoff-card-footer")
    return tuple(subtitle if one.component_id in said else no_update for one in CHANGED)


def _shown(
    advice: Recommendation, run: Run, view: Mapping[str, Any], allowed: Sequence[Limit], *, narrow: bool
) -> tuple[Any, ...]:
    has_batch = advice.recommended_batch_size is not None
    return (
        batch_bullet.batch_bullet(advice, allowed) if has_batch else no_update,
        top(advice),
        Still(bottom(advice, run)),
        not has_batch,
        chip(advice),
        subtitle(advice),
        "by the price below" if plan_limits.has_price(view) else preference_word(view["pref"]),
        f"fewest {sentences.noun_of(run)}",
        sentence(advice),
        answer(advice),
        trade_off_position.trade_off_position(advice, narrow=narrow),
        run_laws.position_footer(advice),
        run_laws.position_sentence(advice),
        Still(recommendation_schedule.schedule(advice)),
        advice.schedule is None,
        Still(recommendation_schedule.rescaling(advice.rescaling)),
        not advice.rescaling,
        *(report_address.address_of(run.id, view) for _ in report_address.LINKS),
        plan_limits.planner_address(run.id, view),
        run_overview.redundant(advice.waste, run),
    )


def preference_word(preference: float) -> str:
    """A preference from 0 (fewest examples) to 1 (fewest steps), in words."""
    if abs(preference - 0.5) < 0.025:
        return "balanced"
    return f"{share(preference)} towards fewer steps"


def chip(advice: Recommendation) -> html.Span:
    """State of the noise scale behind the advice."""
    z = f", z {significant(advice.noise_scale.z, 2)}" if advice.noise_scale.z is not None else ""
    words = {"unresolved": "not resolved"}.get(advice.noise_scale.state, advice.noise_scale.state)
    return html.Span(f"{words}{z}", className="chip")


def subtitle(advice: Recommendation) -> str:
    """As of when, and what stands in brackets and below values."""
    level = "intervals: 95 %"
    return unbroken(f"at step {count(advice.step)} · {level}" if advice.step is not None else level)


def answer(advice: Recommendation) -> list[Child]:
    """The first sentence of a run's page: which batch, and what it would buy, or why that cannot be said."""
    is_change = advice.decision in CHANGES
    why = (advice.effect if is_change else None) or advice.reason
    return [html.B(f"{advice.headline}."), unbroken(f" {why}")]


def top(advice: Recommendation) -> list[Child]:
    """Headline, why, effect and interval."""
    style = DECISION_STYLES.get(advice.decision, "ins")
    parts: list[Child] = [
        html.Div(
            [html.Span(icon(DECISION_ICONS[style]), className=f"tile {style}"), html.Span(advice.headline)],
            className="big",
        )
    ]
    parts += [html.P(unbroken(text), className="why") for text in (advice.reason, advice.effect) if text]
    parts += plan_limits.outcome(advice)
    if advice.interval.low is not None:
        parts.append(html.P(unbroken(interval_sentence(advice)), className="why"))
        if advice.otherwise:
            parts.append(html.P(unbroken(otherwise_sentence(advice)), className="why"))
    elif advice.next_step:
        parts.append(html.P(unbroken(advice.next_step), className="why next"))
    return parts


def interval_sentence(advice: Recommendation) -> str:
    """The interval of the best batch by all errors, and by the statistical one alone."""
    whole, statistical = advice.interval, advice.statistical_interval
    is_rounded = whole.value is not None and significant(whole.value) != significant(advice.recommended_batch_size)
    subject = f"Best batch before rounding {significant(whole.value)}, interval" if is_rounded else "Interval"
    said = f"{subject} {span(whole.low, whole.high)}, {share(whole.level or 0.95)}"
    if statistical.low is not None:
        said += f"; by statistics alone {span(statistical.low, statistical.high)}"
    return said + "."


def otherwise_sentence(advice: Recommendation) -> str:
    """The batch for readers who value steps otherwise, where nobody has said what a step is worth."""
    told = [f"{one.text} {count(one.batch_size)}" for one in advice.otherwise]
    said = ", ".join(told)
    return f"{said[0].upper()}{said[1:]}."


def bottom(advice: Recommendation, run: Run) -> list[Child]:
    """Now and then, learning rate, waste so far, cautions, what to do next."""
    parts: list[Child] = []
    if advice.recommended_batch_size is not None:
        parts += recommendation_table.now_and_then(advice, run)
    parts += learning_rate(advice)
    parts += _waste(advice, run)
    # what the page says at its top is not said again
    said = {notice.code for notice in run.notices}
    parts += [note(unbroken(caution.text)) for caution in advice.warnings if caution.code not in said]
    if advice.odds is not None and advice.calibration.state == "uncalibrated":
        taken = unbroken(f"The odds take {advice.odds.assumes} ")
        parts.append(note([taken, link("How often were we right here?", "/record")], quiet=True, icon_name="info"))
    known = calibration_words(advice)
    if known and all(caution.code != "uncalibrated" for caution in advice.warnings):
        parts.append(note(unbroken(known), quiet=True, icon_name="info"))
    return parts + _surer(advice)


def calibration_words(advice: Recommendation) -> str | None:
    """What ties the noise scale to a critical batch here: κ with its interval, or that nothing does."""
    known, kappa = advice.calibration, advice.calibration.kappa
    if known.state != "calibrated" or kappa.value is None:
        return known.text
    sources = "one sweep or branch" if known.measurements == 1 else f"{known.measurements} sweeps and branches"
    # the API says whether they were measured here or on other tasks of the family
    told, is_told, _ = (known.text or "").partition(": κ")
    where = told if is_told else f"Calibrated here on {sources}"
    return f"{where}: κ {significant(kappa.value)}, {span(kappa.low, kappa.high)}, {share(kappa.level or 0.95)}."


def _surer(advice: Recommendation) -> list[Child]:
    if advice.next_steps:
        told = [html.Li(unbroken(one.text)) for one in advice.next_steps]
        title = html.H3("What would make it surer", className="t2 small section")
        return [title, html.Ul(told, className="notes said small")]
    if advice.next_step and advice.interval.low is not None:
        return [note(unbroken(advice.next_step), quiet=True, icon_name="play")]
    return []


def learning_rate(advice: Recommendation) -> list[Child]:
    """The rate before and after, its rule and interval, and what to try; nothing where the rule has no answer."""
    lr = advice.learning_rate
    if lr.recommended is None:
        return []
    said: list[Child] = [lr.text or lr.rule or ""]
    if lr.low is not None and lr.high is not None:
        said += [" 95 %: ", _whole(f"{rate(lr.low)} – {rate(lr.high)}."), " "]
    if lr.candidates:
        *before, last = lr.candidates
        said += ["Try ", *(part for one in before for part in (_whole(f"{rate(one)},"), " ")), _whole(f"{rate(last)}.")]
    return [
        html.Div(
            [
                html.Span("Learning rate", className="t2"),
                html.Span([f"{rate(lr.current)} → ", html.B(rate(lr.recommended))], className="num"),
            ],
            className="row pair",
        ),
        html.P(said, className="dim small"),
    ]


def _whole(text: str) -> html.Span:
    # 1.04e-3 would else break after its hyphen, and a joiner would go along when it is copied into a program
    return html.Span(text, className="nb")


def _waste(advice: Recommendation, run: Run) -> list[Child]:
    waste = advice.waste
    if waste.fraction.value is None:
        return []
    between = share_span(waste.fraction.low, waste.fraction.high)
    told = [f"{significant(waste.examples.value)} {sentences.noun_of(run)}"] if waste.examples.value is not None else []
    if waste.hours.value is not None:
        told.append(duration(3600 * waste.hours.value))
    if waste.usd.value is not None:
        told.append(money(waste.usd.value))
    return [
        html.Div(
            [
                html.Span("Redundant so far, predicted", className="t2"),
                html.B(share(waste.fraction.value), className="num", title=between),
            ],
            className="row pair",
        ),
        html.P(unbroken(f"{', '.join(told)}; 95 %: {between}"), className="dim small"),
    ]


def sentence(advice: Recommendation) -> str:
    """The bullet in words."""
    best = advice.recommended_batch_size
    if best is None:
        return "No batch size can be recommended yet."
    between = span(advice.interval.low, advice.interval.high)
    return f"Batch in use {count(advice.current_batch_size)}; recommended {count(best)}, interval {between}."
