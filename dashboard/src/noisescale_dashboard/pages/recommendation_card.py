"""The card that says which batch size to use, what it buys, and how sure that is."""

import asyncio
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard import sentences
from noisescale_dashboard.advice import NowAndThen, Recommendation
from noisescale_dashboard.answers import Interval, Run
from noisescale_dashboard.api_client import ApiClient, ApiProblem, visitor_headers
from noisescale_dashboard.figures import batch_bullet, trade_off_position
from noisescale_dashboard.number_format import (
    NOTHING,
    change,
    change_span,
    count,
    money,
    rate,
    share,
    share_span,
    significant,
    span,
    unbroken,
)
from noisescale_dashboard.pages import run_laws
from noisescale_dashboard.pages.parts import (
    DECISION_ICONS,
    DECISION_STYLES,
    TABLE_ACTIONS,
    Child,
    aria,
    card_menu,
    figure_box,
    icon,
    note,
)

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
            card_menu(TABLE_ACTIONS),
        ],
        className="hd",
    )
    body = html.Div(
        [
            html.Div(id=f"{CARD}-top"),
            html.Div(
                [figure_box("run-bullet", card_id=CARD, height=batch_bullet.HEIGHT), _preference()],
                id=f"{CARD}-bullet",
                hidden=True,
            ),
            html.Div(id=f"{CARD}-bottom"),
        ],
        className="bd",
    )
    return html.Section([head, body], className="card rec", **aria({"aria-labelledby": f"{CARD}-title"}))


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the advice at the chosen preference."""

    @app.callback(
        *CHANGED,
        Input("run-pref-view", "data"),
        Input("run-pulse", "data"),
        State("run-id", "data"),
        State("narrow", "data"),
    )
    async def load_recommendation(
        preference: float | None, _pulse: float | None, run_id: str, narrow: bool
    ) -> tuple[Any, ...]:
        if preference is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run, advice = await asyncio.gather(
                api.run(visitor, run_id), api.recommendation(visitor, run_id, preference)
            )
        except ApiProblem as problem:
            # what is already shown stays
            return (*[no_update] * 5, f"not loaded: {problem.title}", *[no_update] * 7)
        has_batch = advice.recommended_batch_size is not None
        return (
            batch_bullet.batch_bullet(advice) if has_batch else no_update,
            top(advice),
            bottom(advice, run),
            not has_batch,
            chip(advice),
            subtitle(advice),
            preference_word(preference),
            f"fewest {sentences.noun_of(run)}",
            sentence(advice),
            answer(advice),
            trade_off_position.trade_off_position(advice, narrow=narrow),
            run_laws.position_footer(advice),
            run_laws.position_sentence(advice),
        )


def _preference() -> html.Div:
    return html.Div(
        [
            html.Div([html.Span("Preference"), html.B(id="run-pref-word")], className="l"),
            dmc.Slider(
                id="run-pref",
                min=0.05,
                max=0.95,
                step=0.05,
                value=0.5,
                label=None,
                size="sm",
                thumbLabel="Preference, from fewest examples to fewest steps",
            ),
            html.Div([html.Span(id="run-pref-left"), html.Span("fewest steps")], className="ends"),
        ],
        className="fld",
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
    return f"at step {count(advice.step)} · {level}" if advice.step is not None else level


def answer(advice: Recommendation) -> list[Child]:
    """The first sentence of a run's page: which batch, and what it would buy, or why that cannot be said."""
    is_change = advice.decision in ("increase", "decrease")
    why = (advice.effect if is_change else None) or advice.reason or sentences.reason_words(advice.noise_scale.reason)
    return [html.B(f"{_headline(advice)}."), unbroken(f" {why}")]


def top(advice: Recommendation) -> list[Child]:
    """Headline, why, effect and interval."""
    style = DECISION_STYLES.get(advice.decision, "ins")
    parts: list[Child] = [
        html.Div(
            [html.Span(icon(DECISION_ICONS[style]), className=f"tile {style}"), html.Span(_headline(advice))],
            className="big",
        )
    ]
    parts += [html.P(unbroken(text), className="why") for text in (advice.reason, advice.effect) if text]
    if advice.interval.low is not None:
        parts.append(html.P(unbroken(_interval_sentence(advice)), className="why"))
    elif advice.next_step:
        parts.append(html.P(unbroken(advice.next_step), className="why next"))
    return parts


def _headline(advice: Recommendation) -> str:
    return advice.headline or "Not enough evidence yet"


def _interval_sentence(advice: Recommendation) -> str:
    whole, statistical = advice.interval, advice.statistical_interval
    is_rounded = whole.value is not None and significant(whole.value) != significant(advice.recommended_batch_size)
    subject = f"Best batch before rounding {significant(whole.value)}, interval" if is_rounded else "Interval"
    said = f"{subject} {span(whole.low, whole.high)}, {share(whole.level or 0.95)}"
    if statistical.low is not None:
        said += f"; by statistics alone {span(statistical.low, statistical.high)}"
    return said + "."


def bottom(advice: Recommendation, run: Run) -> list[Child]:
    """Now and then, learning rate, waste so far, cautions, what to do next."""
    parts: list[Child] = []
    if advice.recommended_batch_size is not None:
        parts.append(_table(advice, run))
    parts += _learning_rate(advice)
    parts += _waste(advice, run)
    # what the page says at its top is not said again
    said = {notice.code for notice in run.notices}
    parts += [note(unbroken(caution.text)) for caution in advice.warnings if caution.code not in said]
    if advice.calibration.text and all(caution.code != "uncalibrated" for caution in advice.warnings):
        parts.append(note(advice.calibration.text, quiet=True, icon_name="info"))
    if advice.next_step and advice.interval.low is not None:
        parts.append(note(advice.next_step, quiet=True, icon_name="play"))
    return parts


def _table(advice: Recommendation, run: Run) -> html.Table:
    noun = sentences.noun_of(run).capitalize()
    now, best = count(advice.current_batch_size), count(advice.recommended_batch_size)
    head = html.Tr([html.Th(word, scope="col") for word in ("To the same loss", f"now {now}", f"at {best}")])
    rows = [
        _factor_row("Steps, predicted", advice.steps_factor),
        _factor_row(f"{noun}, predicted", advice.examples_factor),
        _share_row("Example efficiency", advice.example_efficiency),
        _share_row("Step efficiency", advice.step_efficiency),
    ]
    return html.Table([html.Thead(head), html.Tbody(rows)], className="tb advice")


def _factor_row(label: str, factor: Interval) -> html.Tr:
    tone = "" if factor.value is None else "dn" if factor.value < 1 else "up"
    between = NOTHING if factor.low is None or factor.high is None else change_span(factor.low, factor.high)
    return _row(label, "1 ×", change(factor.value), between, tone)


def _share_row(label: str, pair: NowAndThen) -> html.Tr:
    then = pair.recommended
    return _row(label, share(pair.now.value), share(then.value), share_span(then.low, then.high))


def _row(label: str, now: str, then: str, between: str, tone: str = "") -> html.Tr:
    value = html.Td([html.B(then, className=tone), html.Span(between, className="between")])
    return html.Tr([html.Th(label, scope="row"), html.Td(now), value])


def _learning_rate(advice: Recommendation) -> list[Child]:
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
    fraction, examples = advice.waste.fraction, advice.waste.examples
    if fraction.value is None:
        return []
    cost = f", {money(advice.waste.usd.value)}" if advice.waste.usd.value is not None else ""
    told = f"{significant(examples.value)} {sentences.noun_of(run)}{cost}"
    return [
        html.Div(
            [
                html.Span("Redundant so far, predicted", className="t2"),
                html.B(share(fraction.value), className="num", title=share_span(fraction.low, fraction.high)),
            ],
            className="row pair",
        ),
        html.P(unbroken(f"{told}; 95 %: {share_span(fraction.low, fraction.high)}"), className="dim small"),
    ]


def sentence(advice: Recommendation) -> str:
    """The bullet in words."""
    best = advice.recommended_batch_size
    if best is None:
        return "No batch size can be recommended yet."
    between = span(advice.interval.low, advice.interval.high)
    return f"Batch in use {count(advice.current_batch_size)}; recommended {count(best)}, interval {between}."
