"""The card that says which batch size to use, what it buys, and how sure that is."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.plans import Limit
from noisescale_dashboard.answers.series import RateVerdict
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.figures.planning import batch_bullet, trade_off_position
from noisescale_dashboard.run import head as run_overview
from noisescale_dashboard.run import laws as run_laws
from noisescale_dashboard.run import limits as plan_limits
from noisescale_dashboard.run import rate as run_rate
from noisescale_dashboard.run import recommendation_schedule, recommendation_table, report_address
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import (
    DECISION_ICONS,
    DECISION_STYLES,
    TABLE_ACTIONS,
    card_menu,
    figure_box,
    icon,
    link,
    note,
    preference_slider,
)
from noisescale_dashboard.shell.still import Still
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.decisions import MOVES, UNDECIDED
from noisescale_dashboard.words.number_format import (
    chance,
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
from noisescale_dashboard.words.sentences import preference_word

CARD = "run-advice"
SURENESS = "How likely the change is cheaper: sure from 95 %, likely from 80 %, probably from 60 %"
CHANGED = (
    Output("run-bullet-figure", "data"),
    Output("run-advice-top", "children"),
    Output("run-advice-rows", "children"),
    Output("run-advice-why", "children"),
    Output("run-advice-bottom", "children"),
    Output("run-advice-bullet", "hidden"),
    Output("run-advice-chip", "children"),
    Output("run-advice-subtitle", "children"),
    Output("run-advice-details", "open"),
    Output("run-pref-word", "children"),
    Output("run-pref-left", "children"),
    Output("run-bullet-sentence", "children"),
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
    """The card before its first data: the answer in eight lines, and all else under Details."""
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
                figure_box("run-bullet", card_id=CARD, height=batch_bullet.HEIGHT), id=f"{CARD}-bullet", hidden=True
            ),
            html.Div(id=f"{CARD}-rows"),
            recommendation_schedule.copy_button(),
            _details(),
        ],
        className="bd",
    )
    return html.Section([head, body], className="card rec", **aria({"aria-labelledby": f"{CARD}-title"}))


def _details() -> html.Details:
    return html.Details(
        [
            html.Summary("Details"),
            html.Div(id=f"{CARD}-why"),
            preference_slider("run", html.Span(id="run-pref-left")),
            html.Div(id=f"{CARD}-bottom"),
            run_rate.row_place(),
            recommendation_schedule.layout(),
            plan_limits.layout(),
            html.P(report_address.link("run-advice-report"), className="section"),
        ],
        id=f"{CARD}-details",
        className="more fold",
    )


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
            run, advice, allowed, of_rate = await asyncio.gather(
                api.run(visitor, run_id),
                api.recommendation(visitor, run_id, view["pref"], limits),
                plan_limits.allowed(api, visitor, run_id, view),
                # in the same answer: a warning that came later would move what stands below it
                run_rate.asked_beside(api, visitor, run_id),
            )
        except ApiProblem as problem:
            is_refused = problem.status == 422 and bool(limits)
            return _unchanged("not planned: see the limits" if is_refused else f"not loaded: {problem.title}") + (
                plan_limits.refusal(problem) if is_refused else (no_update,) * len(plan_limits.REFUSED)
            )
        return _shown(advice, run, view, allowed, of_rate, narrow=narrow) + plan_limits.refusal(None)


def _unchanged(subtitle: str) -> tuple[Any, ...]:
    """What is already shown stays, beside a line in both cards that says why."""
    said = (f"{CARD}-subtitle", "run-tradeoff-card-footer")
    return tuple(subtitle if one.component_id in said else no_update for one in CHANGED)


def _shown(
    advice: Recommendation,
    run: Run,
    view: Mapping[str, Any],
    allowed: Sequence[Limit],
    of_rate: RateVerdict,
    *,
    narrow: bool,
) -> tuple[Any, ...]:
    has_batch = advice.recommended_batch_size is not None and advice.decision != UNDECIDED
    return (
        batch_bullet.batch_bullet(advice, allowed) if has_batch else no_update,
        top(advice),
        rows(advice, run, of_rate),
        why(advice),
        Still(bottom(advice, run)),
        not has_batch,
        chip(advice),
        subtitle(advice),
        # what a reader has asked for is shown; what they have folded away or opened stays
        True if plan_limits.asked(view) else no_update,
        "by the price below" if plan_limits.has_price(view) else preference_word(view["pref"]),
        f"fewest {sentences.noun_of(run)}",
        sentence(advice),
        trade_off_position.trade_off_position(advice, narrow=narrow),
        run_laws.position_footer(advice),
        run_laws.position_sentence(advice),
        Still(recommendation_schedule.schedule(advice)),
        not recommendation_schedule.can_be_copied(advice),
        Still(recommendation_schedule.rescaling(advice.rescaling)),
        not advice.rescaling,
        *(report_address.address_of(run.id, view) for _ in report_address.LINKS),
        plan_limits.planner_address(run.id, view),
        run_overview.redundant(advice.waste, run),
    )


def chip(advice: Recommendation) -> html.Span | None:
    """How sure a change is, as a word with its odds; nothing where the batch stays."""
    if advice.sureness is None or advice.odds is None:
        return None
    return html.Span(f"{advice.sureness} · {chance(advice.odds.probability)}", className="chip", title=SURENESS)


def subtitle(advice: Recommendation) -> str:
    """As of when."""
    return unbroken(f"at step {count(advice.step)}") if advice.step is not None else "before the first step"


def top(advice: Recommendation) -> list[Child]:
    """Headline and one reason; what to do about it where there is no answer."""
    style = DECISION_STYLES.get(advice.decision, "ins")
    parts: list[Child] = [
        html.Div(
            [html.Span(icon(DECISION_ICONS[style]), className=f"tile {style}"), html.Span(advice.headline)],
            className="big",
        ),
        html.P(unbroken(advice.short_reason), className="why"),
    ]
    if advice.recommended_batch_size is None:
        # what is possible instead, and what to do: there is nothing else to show
        told = [text for text in (advice.effect, *plan_limits.possible(advice)) if text]
        parts += [html.P(unbroken(text), className="why") for text in dict.fromkeys(told)]
        parts += [html.P(unbroken(advice.next_step), className="why next")] if advice.next_step else []
    return parts


def rows(advice: Recommendation, run: Run, of_rate: RateVerdict) -> list[Child]:
    """Time, cost and learning rate of a change, now against then, and the best rate where the present one is off."""
    is_change = advice.decision in MOVES and advice.recommended_batch_size is not None
    off = run_rate.at_a_glance(of_rate)
    told = recommendation_table.at_a_glance(advice, run) if is_change else []
    cells = [_row(label, value) for label, value in told]
    lr = advice.learning_rate
    if is_change and lr.recommended is not None:
        then: list[Child] = [f"{rate(lr.current)} → ", html.B(rate(lr.recommended))]
        cells.append(_row("Learning rate, by the batch", html.Span(then, className="num")))
    elif off is not None:
        cells.append(_row("Learning rate", html.Span(rate(of_rate.learning_rate), className="num")))
    if off is not None:
        cells.append(_row(*off, style="goes-on"))
    if not cells:
        return []
    table = html.Table(html.Tbody(cells), className="tb glance")
    # there is room for one of the two, and Details say why in full
    untimed = recommendation_table.why_no_time(advice) if is_change and off is None else None
    return [table, html.P(untimed, className="dim small untimed")] if untimed else [table]


def _row(label: Child, value: Child, *, style: str = "") -> html.Tr:
    return html.Tr([html.Th(label, scope="row"), html.Td(value)], className=style)


def why(advice: Recommendation) -> list[Child]:
    """The reason with its numbers, the state of the noise scale, the effect, and the interval of the best batch."""
    effect = None if advice.recommended_batch_size is None else advice.effect
    said = [advice.reason if advice.reason != advice.short_reason else None, effect]
    parts: list[Child] = [html.P(unbroken(text), className="why") for text in said if text]
    parts += plan_limits.outcome(advice)
    if advice.interval.low is not None:
        parts.append(html.P(unbroken(interval_sentence(advice)), className="why"))
        if advice.otherwise:
            parts.append(html.P(unbroken(otherwise_sentence(advice)), className="why"))
    return [*parts, html.P(unbroken(noise_scale_state(advice)), className="why")]


def noise_scale_state(advice: Recommendation) -> str:
    """How well the noise scale behind the advice is known."""
    z = f" (z {significant(advice.noise_scale.z, 2)})" if advice.noise_scale.z is not None else ""
    words = {"unresolved": "not resolved"}.get(advice.noise_scale.state, advice.noise_scale.state)
    return f"The noise scale is {words}{z}."


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
    sources = "one measurement" if known.measurements == 1 else f"{known.measurements} measurements"
    # the API says what they were, and whether they were measured here or on other tasks of the family
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
