"""The ledger of a run as strips: what became of the records of each process, in the order of their numbers."""

from collections.abc import Iterator, Sequence

from dash import html

from noisescale_dashboard.answers.series import Stream
from noisescale_dashboard.shell.explained import Child, aria
from noisescale_dashboard.words.number_format import count

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
