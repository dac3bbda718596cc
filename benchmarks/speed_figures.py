"""The rows of the table of speed in docs/evidence.md: what is said, and which figures of which file it takes.

A row whose figures the file lacks is left out: those of a tracker that was not installed where it was measured.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        what: Its first cell.
        measured: Its second, a name in braces where a number of the file belongs.
        target: Its third.
        results: Name of the file, without ending.
        figures: From names in braces to figures of the file.
    """

    what: str
    measured: str
    target: str
    results: str
    figures: Mapping[str, str]


_LOAD, _JOBS = "10000 runs, 50 senders", "1000 jobs at once"
_BOMBS, _SMALL = "8 senders of gzip bombs", "8 senders of two bytes that are refused, too"

ROWS = (
    Row(
        "ingestion over HTTP with pyramid, 4 senders × 1,000-row batches, durable Postgres, gzip / plain",
        "{gzip} / {plain} rows/s",
        "≥ 100,000",
        "ingest",
        {
            "gzip": "ingest, 4 senders, 1000-row batches, gzip",
            "plain": "ingest, 4 senders, 1000-row batches, plain",
        },
    ),
    Row(
        "1,000 streams × 5 rows every 5 s, p99",
        "{p99} ms",
        "≤ 60",
        "ingest",
        {"p99": "1,000 streams × 5 rows every 5 s, p99"},
    ),
    Row(
        "a logged step in the training thread, on disk when it returns, p50 / p99; with 150 layers p50",
        "{p50} / {p99} µs; {layers} µs",
        "≤ 5 / 40; ≤ 15 µs",
        "hot_path",
        {
            "p50": "noisescale, one step: p50 of 1000000 calls",
            "p99": "noisescale, one step: p99 of 1000000 calls",
            "layers": "noisescale with 150 layers: p50 of 50000 calls",
        },
    ),
    Row(
        "the same beside a busy Python thread, p50 / p99",
        "{p50} / {p99} µs",
        "p99 ≤ 100 µs",
        "hot_path",
        {
            "p50": "noisescale, one step, beside a busy thread: p50 of 50000 calls",
            "p99": "noisescale, one step, beside a busy thread: p99 of 50000 calls",
        },
    ),
    Row(
        "the same by Trackio / W&B offline / TensorBoard in the same minutes, p50",
        "{trackio} / {wandb} / {tensorboard} µs",
        "ours ≤ 0.6 × Trackio's",
        "hot_path",
        {
            "trackio": "Trackio: p50 of 50000 calls",
            "wandb": "W&B offline: p50 of 50000 calls",
            "tensorboard": "TensorBoard: p50 of 50000 calls",
        },
    ),
    Row(
        "the same by MLflow into files / Aim",
        "{mlflow} / {aim} µs",
        "",
        "hot_path",
        {"mlflow": "MLflow: p50 of 50000 calls", "aim": "Aim: p50 of 50000 calls"},
    ),
    Row(
        "share of a training's time that ten logged steps a second take",
        "{share} %",
        "< 0.5 %",
        "hot_path",
        {"share": "share of the training's time at 10 steps a second"},
    ),
    Row(
        "step on one core, each one measured ÷ not watched: MLP of a millisecond / transformer of 0.8 M / 10 M",
        "{mlp} / {middle} / {large} ×",
        "≤ 1.25 / 1.04 / 1.02 ×",
        "capture",
        {
            "mlp": "digits MLP: step watched / unwatched",
            "middle": "0.8 M transformer: step watched / unwatched",
            "large": "10 M transformer: step watched / unwatched",
        },
    ),
    Row(
        "the same with `overhead=0.01`; the MLP with `every=10`",
        "{mlp} / {middle} / {large} ×; {tenth} ×",
        "≤ 1.015; ≤ 1.03 ×",
        "capture",
        {
            "mlp": "digits MLP: step watched / unwatched, overhead=0.01",
            "middle": "0.8 M transformer: step watched / unwatched, overhead=0.01",
            "large": "10 M transformer: step watched / unwatched, overhead=0.01",
            "tenth": "digits MLP: step watched / unwatched, every=10",
        },
    ),
    Row(
        "one backward a step, whose examples' norms nobody asked for: transformer of 0.1 M / 0.8 M",
        "{small} / {middle} ×",
        "≤ 1.05 ×",
        "capture",
        {
            "small": "0.1 M transformer: step watched / unwatched, one backward a step",
            "middle": "0.8 M transformer, causal: step watched / unwatched, one backward a step",
        },
    ),
    Row(
        "10,000 runs × 1,000 rows replayed by 50 senders: rows a second, batch p99, memory of the server; until 1,000 "
        "jobs that come back at once are stored; streams with a record lost or doubled",
        "{rows}, {p99} ms, {memory} MiB; {jobs} s; {wrong}",
        "0",
        "load",
        {
            "rows": f"{_LOAD}: rows a second",
            "p99": f"{_LOAD}: batch p99",
            "memory": "memory of the server, largest",
            "jobs": f"{_JOBS}: until everything is stored",
            "wrong": "streams with a wrong ledger",
        },
    ),
    Row(
        "two server processes against one, rows a second; slowest request at idle",
        "{ratio} ×; {slowest} ms",
        "≥ 0.95 ×; ≤ 40 ms",
        "workers",
        {
            "ratio": "two processes against one, median of rounds",
            "slowest": "request at idle, 2 processes, slowest",
        },
    ),
    Row(
        "p99 of other requests beside eight senders of gzip bombs / 200 slow senders, against none; beside as many "
        "refused bodies of two bytes",
        "{bombs} × / {slow} ×; {small} ×",
        "< 2 ×",
        "limits",
        {
            "bombs": f"p99 of other requests, {_BOMBS}, against alone",
            "slow": "p99 of other requests, 200 slow senders, against alone",
            "small": f"p99 of other requests, {_SMALL}, against alone",
        },
    ),
    Row(
        "series of a run of 10 million steps, random places at six ranges, p50 / p99",
        "{p50} / {p99} ms",
        "≤ 10 / 30",
        "series",
        {"p50": "all ranges, p50", "p99": "all ranges, p99"},
    ),
    Row(
        "the same, the slowest of the six ranges, p50 / p99",
        "{p50} / {p99} ms",
        "≤ 10 / 30",
        "series",
        {"p50": "range of 100,000 steps, p50", "p99": "range of 1,000,000 steps, p99"},
    ),
    Row(
        "Runs table at 10,000 runs, first page, p50",
        "{p50} ms",
        "≤ 15",
        "run_list",
        {"p50": "first page, p50"},
    ),
    Row(
        "recommendation over REST at 10,000 runs, p50: first time / again / with limits and predictions / as of an "
        "earlier step / after new data; the run itself in the same minutes",
        "{first} / {again} / {limits} / {earlier} / {new} ms; {run} ms",
        "≤ 10",
        "recommendation",
        {
            "first": "first time, p50",
            "again": "again, p50",
            "limits": "with limits and predictions, p50",
            "earlier": "as of an earlier step, p50",
            "new": "after new data, p50",
            "run": "for comparison: the run itself, p50",
        },
    ),
    Row(
        "`import noisescale`, beyond a bare interpreter",
        "{extra} ms",
        "≤ 150",
        "import",
        {"extra": "import noisescale, beyond the bare interpreter, median"},
    ),
    Row(
        "Run page to its first chart, against an empty Dash page with one graph, in turn",
        "{ratio} ×",
        "≤ 1.5 ×",
        "page",
        {"ratio": "ratio of the medians"},
    ),
    Row(
        "Run page, cold, compressed",
        "{size} MB",
        "≤ 3",
        "page",
        {"size": "Run page, received over the network, cold"},
    ),
)


def printed(value: float) -> str:
    """Three digits that count: 135,000, 10.7, 0.335."""
    return f"{float(f'{value:.3g}'):,.10g}"
