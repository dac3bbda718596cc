"""The page on which someone can decide: the answer, what it would change, and what it rests on."""

from collections.abc import Sequence

import plotly.graph_objects as go
from dash import html

from noisescale_dashboard.answers.advice import Recommendation
from noisescale_dashboard.figures.over_training.noise_scale_over_training import SeriesView, noise_scale_over_training
from noisescale_dashboard.figures.planning.trade_off_position import trade_off_position
from noisescale_dashboard.figures.svg import as_svg
from noisescale_dashboard.report.cautions import in_short
from noisescale_dashboard.report.markup import Markup
from noisescale_dashboard.report.reading import Reported
from noisescale_dashboard.run import head as run_overview
from noisescale_dashboard.run import laws as run_laws
from noisescale_dashboard.run import limits as plan_limits
from noisescale_dashboard.run import recommendation_card, recommendation_table
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.number_format import count, exactly, share, significant, span, unbroken

# The report's figures: those of the run's page, as SVG that a printer without colours can show.

WIDE, WIDE_HEIGHT = 643, 227
"""Pixels: 170 × 60 mm."""
NARROW, NARROW_HEIGHT = 340, 260
HALF = 280
BATCH_DASH = "7px,4px"
"""What tells the batch from the noise scale where blue and orange are the same grey."""


def noise_scale(found: Reported) -> list[html.Div]:
    """The noise scale over training, once for paper and wide screens and once for phones."""
    words = sentences.series_sentence(found.series, sentences.noun_of(found.run))
    return [
        html.Div(_svg(_drawn_noise_scale(found, narrow=narrow), width, name, words), className=name)
        for name, width, narrow in (("wide", WIDE, False), ("narrow", NARROW, True))
    ]


def _drawn_noise_scale(found: Reported, *, narrow: bool) -> go.Figure:
    run = found.run
    view = SeriesView(
        unit=run.unit,
        noun=sentences.noun_of(run),
        narrow=narrow,
        height=NARROW_HEIGHT if narrow else WIDE_HEIGHT,
    )
    figure = noise_scale_over_training(found.series, view)
    figure.update_traces(selector={"name": "batch"}, line_dash=BATCH_DASH)
    return figure


def trade_off(found: Reported) -> Markup:
    """Where the batch in use and the recommended one lie on the trade-off curve."""
    figure = trade_off_position(found.advice, narrow=True)
    return _svg(figure, HALF, "tradeoff", run_laws.position_sentence(found.advice))


def _svg(figure: go.Figure, width: int, name: str, description: str) -> Markup:
    return Markup(as_svg(figure, width=width, name=name, description=description))


MAX_STEPS_TOLD = 2


def first_page(found: Reported) -> list[Child]:
    """Everything between the head and the foot of the first page."""
    return [
        *_answer(found),
        _noise_figure(found),
        html.Div(
            [
                _now_and_then(found),
                _learning_rate(found),
                _assumptions(found),
                _trade_off(found),
                _limits(found),
                *_cautions(found),
            ],
            className="columns",
        ),
    ]


def _answer(found: Reported) -> list[Child]:
    advice = found.advice
    why = [advice.reason, advice.effect]
    said: list[Child] = [
        html.P(_described(found), className="described"),
        html.H1(advice.headline),
        html.P(unbroken(" ".join(text for text in why if text)), className="lede"),
    ]
    if advice.interval.low is not None:
        said.append(html.P(unbroken(recommendation_card.interval_sentence(advice)), className="lede"))
    return said


def _described(found: Reported) -> str:
    run = found.run
    unit = f" · {run.example} = {count(run.units_per_example)} {run.unit}" if run.units_per_example != 1 else ""
    return f"{run.name} · {run_overview.trained(run)}{unit}"


def _noise_figure(found: Reported) -> html.Figure:
    series, noun = found.series, sentences.noun_of(found.run)
    said = ["Noise scale B_noise over training, measured", noun, "log", "band: 95 % interval", "dashed: batch"]
    if series.window_steps:
        said.append(f"each point: {count(series.window_steps)} steps")
    return html.Figure([html.Figcaption(" · ".join(said)), *noise_scale(found)])


def _now_and_then(found: Reported) -> html.Section:
    body: list[Child] = [html.P("No batch is recommended yet, so there is nothing to compare.")]
    if found.advice.recommended_batch_size is not None:
        body = recommendation_table.now_and_then(found.advice, found.run)
    return html.Section([html.H2("What it would change, predicted, 95 %"), *body])


def _trade_off(found: Reported) -> html.Section:
    words = run_laws.position_footer(found.advice)
    if found.advice.critical_batch.value is None:
        return html.Section([html.H2("On the trade-off curve"), html.P(words)])
    caption = html.Figcaption("Examples ÷ E_min against steps ÷ S_min, predicted")
    figure = html.Figure([caption, html.Div(trade_off(found))])
    return html.Section([html.H2("On the trade-off curve"), figure, html.P(words, className="small")])


def _learning_rate(found: Reported) -> html.Section:
    advice = found.advice
    rate = recommendation_card.learning_rate(advice) or [html.P("No learning rate follows yet.")]
    check: list[Child] = []
    if advice.next_step:
        word = "Next: " if advice.decision == "insufficient_evidence" else "To check: "
        check.append(html.P([html.B(word), unbroken(advice.next_step)]))
    told = [html.Li(unbroken(one.text)) for one in advice.next_steps[:MAX_STEPS_TOLD]]
    if told:
        check += [html.P(html.B("To be surer:")), html.Ul(told)]
    return html.Section([html.H2("Learning rate and validation"), *rate, *check])


def _limits(found: Reported) -> html.Section:
    advice = found.advice
    rows = [
        _row("by statistics alone", advice.statistical_interval.low, advice.statistical_interval.high),
        _row("with the error of κ", advice.interval.low, advice.interval.high),
    ]
    head = html.Tr([html.Th("Best batch, 95 %", scope="col"), html.Th(sentences.noun_of(found.run), scope="col")])
    table = html.Table([html.Thead(head), html.Tbody([row for row in rows if row is not None])], className="tb")
    told = plan_limits.outcome(advice)
    if not told:
        is_limited = any(name in plan_limits.LIMITS for name in found.asked)
        told = [html.P("No limit moves the batch." if is_limited else "No limits were given.", className="small")]
    asked = html.P(["Asked: ", unbroken(" · ".join(asked_words(found)))])
    return html.Section([html.H2("Limits"), *([table] if any(rows) else []), asked, *told])


def _row(label: str, low: float | None, high: float | None) -> html.Tr | None:
    if low is None:
        return None
    return html.Tr([html.Th(label, scope="row"), html.Td(unbroken(span(low, high)))])


def asked_words(found: Reported) -> list[str]:
    """What the reader values and has, each value as it was given: "preference balanced", "hours ≤ 18"."""
    is_priced = plan_limits.has_price(found.asked)
    said = [] if is_priced else [f"preference {sentences.preference_word(found.preference)}"]
    for name, value in found.asked.items():
        label, _ = plan_limits.FIELDS.get(name, (name.replace("_", " "), ""))
        is_most = name.startswith("max_") or name == "examples_per_device"
        word = label if label[:2].isupper() else label.lower()
        said.append(f"{word} {'≤ ' if is_most else ''}{_as_given(value)}")
    return said


def _as_given(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_as_given(one) for one in value)
    try:
        number = float(str(value))
    except ValueError:
        return str(value)
    return count(number) if number >= 1 and number.is_integer() else exactly(number)


def _assumptions(found: Reported) -> html.Section:
    return html.Section([html.H2("What it rests on"), html.P(unbroken(" ".join(_facts(found))), className="small")])


def _facts(found: Reported) -> list[str]:
    measured = sentences.measured_words(found.run)
    said = [
        f"Noise scale of kind simple, tr Σ ÷ |G|², measured from {measured}." if measured else "",
        _latest_window(found),
        _calibration(found.advice),
        _price_of_a_step(found),
        _price_of_devices(found),
        sentences.ledger_sentence(found.streams)[1],
    ]
    return [text for text in said if text]


def _latest_window(found: Reported) -> str:
    advice, estimate = found.advice, found.advice.noise_scale
    value, noun = sentences.estimate_words(estimate), f" {sentences.noun_of(found.run)}"
    said = [f"{value}{noun} [{span(estimate.low, estimate.high)}, {share(estimate.level)}]", estimate.state]
    if estimate.value is None:
        # a bound, or nothing at all
        said = [f"{value}{noun}", "not resolved"] if estimate.low is not None else [value]
    said += [f"z {significant(estimate.z, 2)}"] if estimate.z is not None else []
    said += [f"{count(estimate.num_updates)} updates"] if estimate.num_updates else []
    at = f" at step {count(advice.step)}" if advice.step is not None else ""
    return f"Latest window{at}: {', '.join(said)}."


def _calibration(advice: Recommendation) -> str:
    # the caution says the same
    is_cautioned = any(caution.code == "uncalibrated" for caution in advice.warnings)
    return "" if is_cautioned else recommendation_card.calibration_words(advice) or ""


def _price_of_a_step(found: Reported) -> str:
    worth = found.advice.exchange_rate
    if worth is None or worth.source != "preference" or worth.examples_per_step is None:
        return ""
    preference = sentences.preference_word(found.preference)
    examples = f"{significant(worth.examples_per_step)} {sentences.noun_of(found.run)}"
    return f"Preference {preference}: a saved step is worth {examples}."


def _price_of_devices(found: Reported) -> str:
    run = found.run
    if run.usd_per_device_hour is None or "usd_per_device_hour" in found.asked:
        return ""
    unnamed = f"{count(run.num_devices)} devices" if run.num_devices else "Devices"
    return f"{run_overview.devices(run) or unnamed} at ${run.usd_per_device_hour:,.2f} a device-hour."


def _cautions(found: Reported) -> Sequence[Child]:
    told, num_more = in_short(found)
    if not told:
        return []
    more = [html.Li(f"{num_more} more: the next page.")] if num_more else []
    items = [html.Li(unbroken(text)) for text in told]
    return [html.Section([html.H2("Cautions"), html.Ul([*items, *more])], className="cautions")]
