"""`noisescale import KIND SOURCE …`: look at a source, say what is taken for what, and bring it to the server."""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

from noisescale.config import Config
from noisescale.transport.upload.http import HttpServer
from noisescale.version import __version__
from noisescale_core.errors import ConfigError, TransportError
from noisescale_importers import pipeline
from noisescale_importers.answers.command import say_what_follows
from noisescale_importers.delivery.connection import PATIENCE_SECONDS, Connection
from noisescale_importers.prepared import Prepared, Wishes
from noisescale_importers.reading import NOT_METRICS
from noisescale_importers.roles import ROLES, Taken
from noisescale_importers.source import importer_names, load, shown

MAX_METRICS = 12
MISSING = {
    "loss": "without it no training loss is shown",
    "batch": "without it no critical batch can follow",
    "learning-rate": "without it a sweep takes the runs as they are",
    "step": "the rows are counted from 0",
    "gradient-norm": "without it no noise scale can follow",
}

SECONDS = 0.1
WIDTH = 30

OPTIONS = {
    "run-column": "column that tells runs of one table apart",
    "rows-are-runs": "yes or no: each row of a table is a run of its own",
}
"""Settings of our own importers; any other one is given as --option NAME=VALUE."""


# What an import will take for what, as a table.


def preview(runs: Sequence[Prepared]) -> str:
    """The table: for each role what fills it, its first value, and in how many runs."""
    num_filled = sum(one.has_rows for one in runs)
    lines = [f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}, {num_filled} with rows", ""]
    rows = [("role", "taken from", "first value", "runs")]
    for role in ROLES:
        counted = Counter(_words(one.roles[role]) for one in runs if role in one.roles)
        for words, number in counted.most_common(3):
            first = next(one for one in runs if role in one.roles and _words(one.roles[role]) == words)
            rows.append((role, words, _number(first.number(role)), str(number)))
        if not counted and role in MISSING:
            rows.append((role, *_missing(role, runs)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    metrics = _metrics(runs)
    if metrics:
        more = f" and {len(metrics) - MAX_METRICS} more" if len(metrics) > MAX_METRICS else ""
        lines += ["", f"kept as metrics: {', '.join(shown(name, 40) for name in metrics[:MAX_METRICS])}{more}"]
    return "\n".join(lines)


def _missing(role: str, runs: Sequence[Prepared]) -> tuple[str, str, str]:
    if role == "step" and all(one.has_steps for one in runs if one.has_rows):
        return "the source itself", "", str(sum(one.has_rows for one in runs))
    why = next((one.not_taken[role] for one in runs if role in one.not_taken), MISSING[role])
    return ("each row's place" if role == "step" else "not found"), why, f"--{role} …"


def _words(taken: Taken) -> str:
    if taken.column is None:
        return f"{taken.origin}" if taken.origin.startswith("config") else "the number given"
    said = {"given": "as given", "guessed": "guessed", "source": "as its source says"}[taken.origin]
    return f"{shown(taken.column, 40)} ({said})"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.6g}"


def _metrics(runs: Sequence[Prepared]) -> list[str]:
    found: dict[str, None] = {}
    for one in runs:
        hidden = {taken.column for role, taken in one.roles.items() if role in NOT_METRICS}
        found |= dict.fromkeys(name for name in one.columns if name not in hidden)
    return list(found)


# How far an import is, in a line of the terminal that is written over; none where standard error is no terminal.


class Bar:
    """Runs that are done, and records of the one that is under way."""

    def __init__(self, num_runs: int) -> None:
        self._num_runs = max(1, num_runs)
        self._num_done = 0
        self._is_shown = sys.stderr.isatty()
        self._said_at = -SECONDS

    def item(self, number: int) -> None:
        """So many records of the present run are done."""
        now = time.monotonic()
        if self._is_shown and now - self._said_at >= SECONDS:
            self._said_at = now
            bar = "█" * int(WIDTH * self._num_done / self._num_runs)
            sys.stderr.write(
                f"\r{bar:░<{WIDTH}} run {self._num_done + 1:,} of {self._num_runs:,}, record {number:,}\x1b[K"
            )
            sys.stderr.flush()

    def run_done(self) -> None:
        """One run more is done."""
        self._num_done += 1

    def clear(self) -> None:
        """Wipe the line, before something is said."""
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("import", help="bring runs that exist already: tables, trackers, logs, databases")
    parser.add_argument("kind", help=f"what the source is: {', '.join(importer_names())}")
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="files, folders or addresses")
    parser.add_argument("--project", help="where the runs go, by default that of the settings")
    parser.add_argument("--task", help="what was trained: runs of one task make one sweep")
    parser.add_argument("--as", dest="source_name", metavar="NAME", help="name of the source instead of its folder")
    parser.add_argument("--tag", action="append", default=[], dest="tags", help="of every run; may be repeated")
    parser.add_argument("--dry-run", action="store_true", help="only say what is taken for what")
    parser.add_argument("--finished", action="store_const", const="finished", dest="state", help="the runs have ended")
    parser.add_argument("--running", action="store_const", const="running", dest="state", help="the runs go on")
    parser.add_argument("--target", type=float, action="append", default=[], help="of the sweep, by default proposed")
    parser.add_argument("--goal", choices=("min", "max"), help="whether the metric falls (min) or rises")
    parser.add_argument("--no-sweep", action="store_true", help="store the runs and ask nothing")
    parser.add_argument("--clipped", action="store_true", help="gradient norms are of clipped gradients: not used")
    parser.add_argument("--url", help="server instead of the configured one")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="setting of an importer")
    for name, meaning in OPTIONS.items():
        parser.add_argument(f"--{name}", help=meaning)
    roles = parser.add_argument_group("roles", "a column by its name, in some roles a number, or none")
    for role, meaning in ROLES.items():
        roles.add_argument(f"--{role}", metavar="COLUMN", help=meaning)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 where everything arrived; 1 where something did not; 2 for wrong arguments."""
    wishes, options, config = _wishes(arguments)
    found = pipeline.look(load(arguments.kind), arguments.sources, options, wishes)
    print(preview(found.runs))
    for damage in [*found.damages, *(damage for one in found.runs for damage in one.damages if arguments.dry_run)]:
        print(f"{shown(damage.place)}: {shown(damage.reason, 300)}")
    if arguments.dry_run or not found.runs:
        return 0 if found.runs else 1
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    bar = Bar(len(found.runs))
    connection = Connection(server, on_trouble=lambda trouble: _wait(bar, trouble))
    try:
        account = pipeline.send(found, wishes, connection, on_progress=bar.item, on_run=bar.run_done)
        bar.clear()
        for sentence in pipeline.sentences(account):
            print(sentence)
        if not arguments.no_sweep:
            _say_what_follows(arguments, account, connection, wishes.project)
    except TransportError as error:
        bar.clear()
        print(f"{error}: run the same command again, it goes on where it stopped", file=sys.stderr)
        return 1
    finally:
        server.close()
    return 1 if account.faults else 0


def _say_what_follows(
    arguments: argparse.Namespace, account: pipeline.Account, connection: Connection, project: str
) -> None:
    """Sentences about the runs together; a key that may only write stores them, and reads no answer."""
    sentences = say_what_follows(
        account.summaries,
        connection,
        project,
        targets=arguments.target,
        goal=arguments.goal,
        is_clipped=arguments.clipped,
        prices=account.prices,
    )
    try:
        for sentence in sentences:
            print(sentence)
    except ConfigError as error:
        print(f"what follows from the runs cannot be read: {error}")


def _wait(bar: Bar, trouble: str) -> None:
    bar.clear()
    print(f"{trouble}: trying again for {PATIENCE_SECONDS / 60:.0f} minutes", file=sys.stderr)


def _wishes(arguments: argparse.Namespace) -> tuple[Wishes, dict[str, str], Config]:
    config = Config.from_env(url=arguments.url, project=arguments.project)
    options = {name: value for name in OPTIONS if (value := getattr(arguments, name.replace("-", "_"))) is not None}
    for one in arguments.option:
        name, equals, value = one.partition("=")
        if not equals:
            raise ConfigError(f"--option must be NAME=VALUE, got {one!r}")
        options[name] = value
    flags = {role: value for role in ROLES if (value := getattr(arguments, role.replace("-", "_"))) is not None}
    wishes = Wishes(
        kind=arguments.kind,
        project=config.project,
        task=arguments.task,
        source_name=arguments.source_name,
        flags=flags,
        tags=tuple(arguments.tags),
        state=arguments.state,
    )
    return wishes, options, config
