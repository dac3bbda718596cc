"""What reached the server from a run, and the run's configuration."""

import json
from collections.abc import Sequence
from typing import Any

from dash import html

from noisescale_dashboard import sentences
from noisescale_dashboard.answers import Run, Stream
from noisescale_dashboard.number_format import count, rate
from noisescale_dashboard.pages.parts import Child, card, icon, key_values, note

MAX_KEYS, MAX_TEXT = 200, 200


def layout(run: Run, streams: Sequence[Stream]) -> list[Child]:
    """The two cards at the end of the page."""
    return [_ledger_card(streams), _config_card(run)]


def _ledger_card(streams: Sequence[Stream]) -> html.Section:
    is_complete, sentence = sentences.ledger_sentence(streams)
    verdict = (
        html.Div([icon("check", "sm"), html.Span(sentence)], className="row complete")
        if is_complete
        else note(sentence)
    )
    head = html.Thead(
        html.Tr([html.Th(word, scope="col") for word in ("Process", "Steps shown", "Stored", "Lost", "Rejected")])
    )
    rows = html.Tbody([_stream_row(number, stream) for number, stream in enumerate(streams, start=1)])
    body: list[Child] = [verdict]
    if streams:
        body.append(html.Div(html.Table([head, rows], className="tb"), className="scrollx-in", tabIndex="0"))
    body += [html.P(words, className="dim small") for words in _losses(streams)]
    subtitle = "One line a process that logged into this run; a resumed job is a new process"
    return card("Records", subtitle, body, card_id="run-ledger-card")


def _stream_row(number: int, stream: Stream) -> html.Tr:
    shown = ", ".join(f"{count(first)} – {count(last)}" for first, last in stream.live_steps) or "none"
    started = (stream.started_at or "").replace("T", " ")[:19]
    cells = [
        html.Td(f"{number}", title=f"{stream.stream_id}, started {started} UTC"),
        html.Td(shown),
        html.Td(count(stream.num_stored)),
        html.Td(count(stream.num_lost), className="warn-text" if stream.num_lost else ""),
        html.Td(count(stream.num_rejected), className="warn-text" if stream.num_rejected else ""),
    ]
    return html.Tr(cells)


def _losses(streams: Sequence[Stream]) -> list[str]:
    return [
        f"Process {number}, records {count(lost.first_seq)} – {count(lost.last_seq)}: {lost.reason.replace('_', ' ')}"
        for number, stream in enumerate(streams, start=1)
        for lost in stream.lost[:5]
    ]


def _config_card(run: Run) -> html.Section:
    known: list[tuple[str, Child]] = [
        ("Run", html.Span(run.id, className="mono")),
        (
            "Estimator",
            f"{(run.estimator or 'none').replace('_', ' ')}, {run.num_micro_batches or 0} small batches a step",
        ),
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
    return card("Configuration", "As the training script gave it", body, card_id="run-config-card")


def literal(value: Any) -> str:
    """A configuration value as it would be typed, cut where it is very long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
