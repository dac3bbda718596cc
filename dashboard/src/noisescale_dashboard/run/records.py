"""What reached the server from a run, and the run's configuration."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, html, no_update
from dash.exceptions import PreventUpdate

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.series import Metric, Stream
from noisescale_dashboard.api.client import ApiClient
from noisescale_dashboard.api.transport import ApiProblem, visitor_headers
from noisescale_dashboard.shell import shell
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.shell.parts import card, icon, key_values, note
from noisescale_dashboard.shell.still import Still
from noisescale_dashboard.words import sentences
from noisescale_dashboard.words.kinds import SIMPLE
from noisescale_dashboard.words.number_format import NOTHING, count, rate, significant, span

# The ledger of a run as strips: what became of the records of each process, in the order of their numbers.

MAX_STREAMS = 24
MAX_GAPS = 40
"""Gaps of a strip that are drawn apart; further ones stand together at its end."""
OPEN_WORDS = "stream open"


def strips(named: Sequence[tuple[str, Stream]]) -> list[Child]:
    """A strip a stream, newest last; the words beside it are those of the delivery's promise."""
    rows: list[Child] = [_strip(name, stream) for name, stream in named[-MAX_STREAMS:]]
    left_out = len(named) - MAX_STREAMS
    more = [html.P(f"{left_out} earlier processes are in the table.", className="dim small")] if left_out > 0 else []
    return [*more, html.Div(rows, className="ledger")] if rows else []


def _strip(name: str, stream: Stream) -> html.Div:
    state, words = verdict(stream)
    total = max(stream.acked_seq, 1)
    bar = [
        html.Span(className=kind, style={"width": f"{100 * length / total:.3f}%"}) for kind, length in segments(stream)
    ]
    said = f"Process {name}: {words}; {count(stream.num_stored)} of {count(stream.acked_seq)} records stored"
    return html.Div(
        [
            html.Span(name, className="nm"),
            html.Span(bar, className="bar", role="img", title=said, **aria({"aria-label": said})),
            html.Span(words, className=f"wd {state}"),
        ],
        className="strip",
    )


def verdict(stream: Stream) -> tuple[str, str]:
    """The state and its words: "complete", "12 declared lost", "3 rejected"; and whether more may come."""
    missing = [f"{count(stream.num_lost)} declared lost"] if stream.num_lost else []
    missing += [f"{count(stream.num_rejected)} rejected"] if stream.num_rejected else []
    is_open = stream.finished_at is None
    if missing:
        return "lost", ", ".join([*missing, *([OPEN_WORDS] if is_open else [])])
    if is_open:
        last = "" if stream.last_step is None else f", last seen at step {count(stream.last_step)}"
        return "open", f"{OPEN_WORDS}{last}"
    return "stored", "complete"


def segments(stream: Stream) -> Iterator[tuple[str, int]]:
    """("stored" | "lost" | "rejected", number of records), in order.

    Which records were rejected is not known here: they stand at the end, and so do losses beyond the first gaps.
    """
    drawn, at, lost = sorted(stream.lost, key=lambda gap: gap.first_seq)[:MAX_GAPS], 1, 0
    rest = stream.num_stored
    for gap in drawn:
        before = min(max(gap.first_seq - at, 0), rest)
        if before:
            yield "stored", before
        yield "lost", gap.last_seq - gap.first_seq + 1
        lost += gap.last_seq - gap.first_seq + 1
        rest, at = rest - before, gap.last_seq + 1
    for kind, length in (("stored", rest), ("lost", stream.num_lost - lost), ("rejected", stream.num_rejected)):
        if length > 0:
            yield kind, length


MAX_KEYS, MAX_TEXT, MAX_METRICS = 200, 200, 50
MAX_LOST = 5
"""Of one process, ranges of lost records in words."""
METRIC_POINTS = 200
"""Of each metric: the last of them, which the table shows, is a mean over a 200th of a long run."""


def register(app: Dash, api: ApiClient) -> None:
    """The callback that reads the records when the main figure is there, and once a minute while the run goes on."""
    app.clientside_callback(
        ClientsideFunction(shell.NAMESPACE, "recordsAsked"),
        Output("run-records-asked", "data"),
        Input("run-live", "data"),
        State("run-records-asked", "data"),
        State("run-records", "children"),
    )

    @app.callback(
        Output("run-records", "children"),
        Output("run-records-note", "children"),
        Input("run-records-asked", "data"),
        State("run-id", "data"),
    )
    async def load_records(asked: dict[str, Any] | None, run_id: str) -> tuple[Any, ...]:
        if asked is None:
            raise PreventUpdate
        visitor = visitor_headers(ctx.headers)
        try:
            run, streams, metrics = await asyncio.gather(
                api.run(visitor, run_id),
                api.streams(visitor, run_id),
                api.metrics(visitor, run_id, {"points": METRIC_POINTS}),
            )
        except ApiProblem as problem:
            # what is shown stays; where nothing is, it is asked for again
            return no_update, note(f"Newest records, metrics and configuration are not loaded: {problem.title}.")
        return Still(layout(run, streams, metrics)), None


def layout(run: Run, streams: Sequence[Stream], metrics: Sequence[Metric]) -> list[Child]:
    """The cards at the end of the page: metrics where some were logged, records, configuration."""
    first: list[Child] = [_metrics_card(metrics)] if metrics else []
    return [html.Div([*first, _ledger_card(streams)], className="grid stack"), _config_card(run)]


def _metrics_card(metrics: Sequence[Metric]) -> html.Section:
    head = html.Thead(html.Tr([html.Th(word, scope="col") for word in ("Metric", "Latest", "Step", "Least – most")]))
    rows = html.Tbody([_metric_row(metric) for metric in metrics[:MAX_METRICS]])
    # the API gives a page of them: how many there are is not known here
    more = [html.P("Further metrics are not shown.", className="dim small")] if len(metrics) > MAX_METRICS else []
    table = html.Div(
        html.Table([head, rows], className="tb"),
        className="scrollx-in scrolly", tabIndex="0", role="region", **aria({"aria-label": "Logged metrics"}),
    )  # fmt: skip
    return card(
        "Metrics",
        "As logged with log_metrics, over the whole run",
        [table, *more],
        card_id="run-metrics-card",
        has_table=True,
    )


def _metric_row(metric: Metric) -> html.Tr:
    last = metric.last
    least, most = [v for v in metric.min if v is not None], [v for v in metric.max if v is not None]
    between = (
        NOTHING if not least or not most else "constant" if min(least) == max(most) else span(min(least), max(most))
    )
    cells = (
        [html.Td(significant(last[1], 4)), html.Td(count(last[0]))] if last else [html.Td(NOTHING), html.Td(NOTHING)]
    )
    return html.Tr([html.Td(metric.name[:MAX_TEXT], className="name"), *cells, html.Td(between)])


def _ledger_card(streams: Sequence[Stream]) -> html.Section:
    is_complete, sentence = sentences.ledger_sentence(streams)
    verdict = (
        html.Div([icon("check", "sm"), html.Span(sentence)], className="row complete")
        if is_complete
        else note(sentence)
    )
    body: list[Child] = [verdict, *strips(_named(streams))]
    if streams:
        body.append(html.Div(ledger_table(streams), className="scrollx-in", tabIndex="0"))
    body += [html.P(words, className="dim small") for words in losses(streams)]
    subtitle = "One line a process and kind that logged into this run; a resumed job is a new process"
    return card("Records", subtitle, body, card_id="run-ledger-card", has_table=True)


def ledger_table(streams: Sequence[Stream]) -> html.Table:
    """A row a process and kind: which steps are shown from it, and what became of its records."""
    head = html.Thead(
        html.Tr([html.Th(word, scope="col") for word in ("Process", "Steps shown", "Stored", "Lost", "Rejected")])
    )
    return html.Table(
        [head, html.Tbody([_stream_row(name, stream) for name, stream in _named(streams)])], className="tb"
    )


def _named(streams: Sequence[Stream]) -> list[tuple[str, Stream]]:
    """Each stream with its name: the number of its process, and its kind where that is not simple.

    A stream of another kind belongs to the process whose simple stream started at the same moment.
    """
    simple = [one for one in streams if one.kind == SIMPLE.name]
    numbers = {one.stream_id: number for number, one in enumerate(simple, start=1)}
    processes = {one.started_at: numbers[one.stream_id] for one in simple}
    for one in streams:
        if one.stream_id not in numbers:
            processes.setdefault(one.started_at, len(processes) + 1)
    return [
        (f"{numbers[one.stream_id]}" if one.kind == SIMPLE.name else f"{processes[one.started_at]}, {one.kind}", one)
        for one in streams
    ]


def _stream_row(name: str, stream: Stream) -> html.Tr:
    shown = ", ".join(f"{count(first)} – {count(last)}" for first, last in stream.live_steps) or "none"
    num_more = stream.num_live_ranges - len(stream.live_steps)
    more = f" and {count(num_more)} more ranges" if num_more > 0 else ""
    started = (stream.started_at or "").replace("T", " ")[:19]
    cells = [
        html.Td(name, title=f"{stream.stream_id}, started {started} UTC"),
        html.Td(shown + more),
        html.Td(count(stream.num_stored)),
        html.Td(count(stream.num_lost), className="warn-text" if stream.num_lost else ""),
        html.Td(count(stream.num_rejected), className="warn-text" if stream.num_rejected else ""),
    ]
    return html.Tr(cells)


def losses(streams: Sequence[Stream]) -> list[str]:
    """Which records were lost and why, the first few of each process, and how many ranges more there are."""
    return [words for name, stream in _named(streams) for words in _losses_of(f"Process {name}", stream)]


def _losses_of(process: str, stream: Stream) -> Iterator[str]:
    shown = stream.lost[:MAX_LOST]
    for lost in shown:
        yield f"{process}, records {count(lost.first_seq)} – {count(lost.last_seq)}: {lost.reason.replace('_', ' ')}"
    if stream.num_lost_ranges > len(shown):
        yield f"{process}: {count(stream.num_lost_ranges - len(shown))} more ranges of lost records"


def _config_card(run: Run) -> html.Section:
    known: list[tuple[str, Child]] = [
        ("Run", html.Span(run.id, className="mono")),
        ("Measured from", sentences.measured_words(run) or "nothing yet"),
        *([("Notes", _notes(run.notes))] if run.notes else []),
        ("Optimizer", f"{run.optimizer or 'unknown'}, learning rate {rate(run.lr)}"),
        ("Loss", (run.loss_reduction or "unknown").replace("_", " ")),
        ("Started", run.created_at.replace("T", " ")[:19] + " UTC"),
    ]
    config = dict(run.config or {})
    own: list[tuple[str, Child]] = [(key[:MAX_TEXT], literal(value)) for key, value in list(config.items())[:MAX_KEYS]]
    left_out = (
        [html.P(f"{len(config) - MAX_KEYS} more keys are not shown.", className="dim")]
        if len(config) > MAX_KEYS
        else []
    )
    body = html.Div([key_values([*known, *own]), *left_out], className="scrolly", tabIndex="0")
    return card("Configuration", "As the training script gave it", body, card_id="run-config-card", has_table=True)


def _notes(notes: Sequence[str]) -> html.Ul:
    """Facts about the measurement, as the client said them."""
    return html.Ul([html.Li(note) for note in notes], className="notes")


def literal(value: Any) -> str:
    """A configuration value as it would be typed, cut where it is very long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
