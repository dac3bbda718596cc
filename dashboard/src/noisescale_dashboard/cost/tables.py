"""Tables and sentences of the page of time and cost."""

from collections.abc import Sequence

from dash import html

from noisescale_dashboard.answers.cost import (
    Board,
    Device,
    DeviceTrend,
    Factor,
    Growth,
    RecordStep,
    RunCompute,
    SameHardware,
    Training,
)
from noisescale_dashboard.shell.explained import Child
from noisescale_dashboard.shell.parts import labelled, link
from noisescale_dashboard.words.number_format import NOTHING, count, duration, money, ratio, significant, span

SECONDS = 3600
LEVEL_SAID = "95 %"
TRAINING_HEADS = ("Training", "Time", "USD", "Device-hours", "Devices", "Day")
STEP_HEADS = ("What", "Factor", "How it is known")
FACTOR_HEADS = ("What", "Published", "Computed")
COMPUTE_HEADS = ("Run", "Day", "PF-days", "USD", "Counted from")
MARKS = {"yes": "✓", "no": "–", "unknown": "?"}


def of_trainings(rows: Sequence[Training]) -> html.Table:
    """A row a training, in the order of the server."""
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in TRAINING_HEADS]))
    return html.Table([head, html.Tbody([_training(one) for one in rows])], className="tb list cost-rows fold")


def _training(one: Training) -> html.Tr:
    name: Child = link(one.name, f"/runs/{one.run_id}") if one.run_id else one.name
    marks = [word for word, is_there in (("on the front", one.is_on_front), ("record", one.is_record)) if is_there]
    below = [*marks, *([f"not on the front: {one.excluded}"] if one.excluded else [])]
    if one.change:
        spent = "" if one.engineering_hours is None else f", {significant(one.engineering_hours)} h of engineering"
        below.append(f"{one.change}{spent}")
    cost: list[Child] = [money(one.usd), html.Span(one.price_said, className="below")]
    if one.on_spot is not None:
        verdict = "" if one.on_spot.pays else ", which does not pay"
        cost.append(html.Span(f"interruptible: {money(one.on_spot.usd)}{verdict}", className="below"))
    paused = [html.Span(f"{duration(one.paused_hours * SECONDS)} of it paused", className="below")]
    taken: list[Child] = [duration(one.hours * SECONDS), *(paused if one.paused_hours > 0 else [])]
    devices = NOTHING if one.num_devices is None else f"{count(one.num_devices)} × {one.device or 'device'}"
    cells: list[Child | list[Child]] = [
        [name, html.Span(" · ".join(below), className="below"), *_techniques(one)],
        taken,
        cost,
        significant(one.device_hours),
        devices,
        one.day,
    ]
    # the name stands alone in its line on a phone
    return html.Tr([html.Td(cells[0]), *labelled([html.Td(cell) for cell in cells[1:]], TRAINING_HEADS[1:])])


def _techniques(one: Training) -> list[Child]:
    """The checklist, each with what says so."""
    if not one.techniques:
        return []
    known = [item for item in one.techniques if item.answer != "unknown"]
    said = [html.Li([f"{MARKS[item.answer]} {item.name}: ", html.Span(item.basis, className="dim")])
            for item in one.techniques]  # fmt: skip
    summary = f"Techniques: {sum(item.answer == 'yes' for item in known)} of {len(one.techniques)} used"
    return [html.Details([html.Summary(summary, className="small"), html.Ul(said)], className="details")]


def of_steps(steps: Sequence[RecordStep]) -> Child:
    """What each step along the records consists of."""
    if not steps:
        return html.P("No record has been beaten yet, so there is no speed-up to explain.", className="t2")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in STEP_HEADS]))
    rows: list[Child] = []
    for step in steps:
        rows.append(html.Tr([html.Td(html.B(f"→ {step.after}")), html.Td(html.B(ratio(step.times))), html.Td("")]))
        rows += [html.Tr([html.Td(part.cause), html.Td(ratio(part.times)), html.Td(part.basis)]) for part in step.parts]
    return html.Table([head, html.Tbody(rows)], className="tb cost-words cost-parts")


def of_factors(factors: Sequence[Factor], same: Sequence[SameHardware], board: Board) -> html.Table:
    """Improvement: published next to computed, against the first record, and on the same hardware."""
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in FACTOR_HEADS]))
    rows = [_factor_row(one.said, one.published, one.computed, one.basis) for one in factors]
    for said, found, unit in (
        ("faster than the first record", board.improvement, "h"),
        ("cheaper than the first record, on demand", board.improvement_usd, "USD"),
    ):
        if found is not None and not factors:
            basis = f"{significant(found.before)} {unit} ({found.baseline}) to {significant(found.after)} {unit}"
            rows.append(_factor_row(said, None, found.times, f"{basis} ({found.best})"))
    for one in same:
        first, last = one.records[0], one.records[-1]
        basis = f"{duration(first.value * SECONDS)} on {first.day} to {duration(last.value * SECONDS)} on {last.day}"
        rows.append(_factor_row(f"on {count(one.num_devices)} × {one.device} alone", None, one.times, basis))
    return html.Table([head, html.Tbody(rows)], className="tb cost-words")


def _factor_row(said: str, published: float | None, computed: float | None, basis: str) -> html.Tr:
    cells: list[Child | list[Child]] = [
        [said, html.Span(basis, className="below")], _factor(published), _factor(computed),
    ]  # fmt: skip
    return html.Tr([html.Td(cell) for cell in cells])


def _factor(value: float | None) -> str:
    """A factor as a reader compares it with a published one: 808.9 → "809 ×"."""
    if value is None:
        return NOTHING
    return f"{count(round(value))} ×" if value >= 10 else ratio(value)


def of_compute(runs: Sequence[RunCompute]) -> html.Table:
    """A row a run, the newest first."""
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in COMPUTE_HEADS]))
    rows = [
        html.Tr(
            [
                html.Td(cell)
                for cell in (
                    link(one.name, f"/runs/{one.run_id}"), one.day, significant(one.compute.pf_days), money(one.usd),
                    one.compute.said,
                )
            ]
        )
        for one in reversed(runs)
    ]  # fmt: skip
    return html.Table([head, html.Tbody(rows)], className="tb list cost-rows")


def of_devices(devices: Sequence[Device]) -> html.Table:
    """A row a kind of device, oldest first."""
    words = ("Device", "Year", "Peak, TFLOP/s", "Format", "Memory, GB")
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in words]))
    rows = [
        html.Tr(
            [
                html.Th(one.device, scope="row"),
                *(html.Td(cell) for cell in (
                    str(one.year), significant(one.peak_tflops), one.format, significant(one.memory_gb)
                )),
            ]
        )
        for one in devices
    ]  # fmt: skip
    return html.Table([head, html.Tbody(rows)], className="tb cost-words")


def trend_words(trend: DeviceTrend) -> str:
    """How fast peak and memory of a device double over the kinds in the table."""
    parts = ((trend.peak, "Peak of a device"), (trend.memory, "Memory of a device"))
    return " ".join(months_words(growth, noun, of="kinds") for growth, noun in parts)


def months_words(growth: Growth | None, noun: str, *, of: str = "runs") -> str:
    """How fast it doubles, with the interval; or that it cannot be said."""
    if growth is None:
        return f"{noun}: too few {of} to say; six over thirty days are needed."
    if growth.months is None:
        slope = growth.doublings_per_year
        return f"{noun} does not grow: {significant(slope.value)} doublings a year [{span(slope.low, slope.high)}]."
    months = growth.months
    if months.high is None:
        return f"{noun} doubles in {significant(months.value)} months, at the fastest in {significant(months.low)}; " \
            "it may also not grow at all."  # fmt: skip
    return f"{noun} doubles in {significant(months.value)} months [{span(months.low, months.high)}], {growth.num} {of}."
