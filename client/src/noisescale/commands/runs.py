"""`noisescale runs`: the newest runs, with noise scale, batch and what to do about it."""

import argparse
import json
from collections.abc import Sequence

from noisescale.commands.on_server import add_url, ask_server
from noisescale.commands.terminal import Terminal, as_table, tell
from noisescale.stored import words
from noisescale.stored.api import Api
from noisescale.stored.finding import SHORT_ID, StoredRun
from noisescale_core.advice.parts.numbers import number
from noisescale_core.advice.words.of_a_run import batch

STATES = ("running", "silent", "crashed", "finished", "failed", "diverged")
ORDERS = {"newest": "-updated_at", "saving": "-misfit", "name": "name", "noise-scale": "-noise_scale", "loss": "loss"}
"""Names of orders, and what the server calls them: batches furthest from their noise scale have most to save."""

HEADER = ("name", "id", "task", "state", "step", "loss", "noise scale", "batch", "decision")
NUMBERS = (4, 5, 6, 7)
FEW = 20


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("runs", help="list runs, the newest first, with noise scale, batch and decision")
    parser.add_argument("text", nargs="?", help="part of the name, or the beginning of the id")
    parser.add_argument("--project", help="of this project alone")
    parser.add_argument("--task", help="of this task alone")
    parser.add_argument("--state", action="append", choices=STATES, help="in this state; may be repeated")
    parser.add_argument("--order", choices=sorted(ORDERS), default="newest", help="saving: most to save on top")
    parser.add_argument("--limit", type=_count, default=FEW, metavar="N", help=f"at most this many, {FEW} without it")
    parser.add_argument("--json", action="store_true", help="the server's answer as it is: docs/rest.md, Runs")
    add_url(parser)
    parser.set_defaults(run=run)


def _count(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 500:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 500, got {text!r}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """0 with a list, also an empty one; 1 without an answer; 2 for wrong settings."""
    return ask_server("runs", arguments.url, lambda api: _list(api, arguments))


def _list(api: Api, arguments: argparse.Namespace) -> int:
    page = api.get(
        "/runs",
        q=arguments.text,
        project=arguments.project,
        task=arguments.task,
        status=arguments.state,
        sort=ORDERS[arguments.order],
        limit=arguments.limit,
    )
    if arguments.json:
        tell(json.dumps(page, indent=2, ensure_ascii=False))
    elif page["runs"]:
        for line in lines_of(page["runs"], page["total"], Terminal.of_process()):
            tell(line)
    else:
        tell(f"No run fits at {api.url}.")
    return 0


def lines_of(runs: Sequence[StoredRun], total: int, terminal: Terminal) -> list[str]:
    """The table, and how many more there are.

    Args:
        runs: As the server gives them.
        total: How many fit.
        terminal: What it is shown on.
    """
    lines = as_table(HEADER, [_row(run) for run in runs], terminal, numbers=NUMBERS)
    more = "" if total <= len(runs) else f" {len(runs)} of {total:,} runs: --limit shows more."
    note = f"Noise scales and batches are in examples, intervals hold 95 %.{more}"
    return [*lines, "", terminal.styled(note, "dim")]


def _row(run: StoredRun) -> Sequence[str]:
    return (
        run["name"],
        run["id"][:SHORT_ID],
        f"{run['project']}/{run['task']}",
        words.state(run),
        words.steps(run),
        "–" if run.get("loss") is None else number(run["loss"]),
        words.noise_scale(run.get("noise_scale"), has_reason=False),
        "–" if run.get("global_batch") is None else batch(run["global_batch"]),
        words.decision(run),
    )
