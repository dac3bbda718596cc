"""`noisescale sync DIR`: send what jobs have left on disk."""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from noisescale.config import Config, without_password
from noisescale.outbox import end_of_a_killed_job
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload.database_behind import DatabaseBehind
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import Outcome, deliver, has_arrived
from noisescale.transport.upload.left_behind import stream_folders
from noisescale.version import __version__
from noisescale_core.errors import TransportError

TIMEOUT_SECONDS = 24 * 3600.0
PATIENCE_SECONDS = 300.0
REPORT_SECONDS = 0.1
BAR_WIDTH = 30


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("sync", help="send the records that jobs have left on disk")
    parser.add_argument(
        "folder", nargs="?", type=Path, help="of a stream, a run, or all; default: what is meant for the server"
    )
    parser.add_argument("--url", help="send to this server instead of the configured one")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_SECONDS, help="seconds to try for, default a day")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 when the server has an account of everything; 1 when not; 2 for wrong arguments."""
    config = Config.from_env(url=arguments.url)
    if arguments.folder is not None and not arguments.folder.is_dir():
        print(f"no folder {arguments.folder}: give one that a job has named, or none for all", file=sys.stderr)
        return 2
    roots = [arguments.folder] if arguments.folder is not None else list(config.folders)
    folders = [folder for root in roots for folder in stream_folders(root) if not folder.has_moved]
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    unclear: list[StreamFolder] = []
    if arguments.folder is None:
        folders, unclear = _meant_for(folders, server, without_password(config.url))
    if not folders:
        print(f"nothing to send in {', '.join(map(str, roots))}")
    deadline = time.monotonic() + arguments.timeout
    outcomes = [_sync(folder, server, max(1.0, deadline - time.monotonic())) for folder in folders]
    server.close()
    if folders:
        _print_totals([outcome for outcome in outcomes if outcome is not None], folders)
    is_all_there = all(outcome is not None and not outcome.num_left for outcome in outcomes)
    return 0 if is_all_there and all(map(_is_known_to_have_arrived, unclear)) else 1


def _meant_for(
    folders: Sequence[StreamFolder], server: HttpServer, url: str
) -> tuple[list[StreamFolder], list[StreamFolder]]:
    """The streams that were meant for this server, and those of which only a person can say; of others it is said how.

    Nobody has asked for another team's or project's records to be here, and what has arrived there would be twice.
    """
    others = _meant_for_others(folders, url)
    of_nobody = [folder for folder in folders if folder.meta().get("url") is None]
    if of_nobody:
        print(f"{_that_are_left_out(of_nobody)}: nothing says which server was meant. {_all_the_same(of_nobody, url)}")
    here = [folder for folder in folders if folder not in (*others, *of_nobody)]
    elsewhere = _of_other_databases(here, server, url)
    return [folder for folder in here if folder not in elsewhere], [*of_nobody, *elsewhere]


def _meant_for_others(folders: Sequence[StreamFolder], url: str) -> list[StreamFolder]:
    others = [folder for folder in folders if folder.meta().get("url") not in (None, url)]
    for there in sorted({str(folder.meta()["url"]) for folder in others}):
        meant = [folder for folder in others if folder.meta()["url"] == there]
        num_arrived = sum(map(_is_known_to_have_arrived, meant))
        print(
            f"{_that_are_left_out(meant)}: meant for {there}, where {num_arrived} have arrived. "
            f"To send there: noisescale sync --url {there}. {_all_the_same(meant, url)}"
        )
    return others


def _of_other_databases(folders: Sequence[StreamFolder], server: HttpServer, url: str) -> list[StreamFolder]:
    """Those of which another database than that of the server has records already."""
    behind = DatabaseBehind(server)
    try:
        others = [folder for folder in folders if behind.is_another(folder)]
        why = f"another database is behind {url} now than the one that has their first records"
    except TransportError as error:
        others, why = [folder for folder in folders if folder.database_id() is not None], str(error)
    if others:
        print(f"{_that_are_left_out(others)}: {why}. {_all_the_same(others, url)}")
    return others


def _that_are_left_out(folders: Sequence[StreamFolder]) -> str:
    return f"{len(folders)} {_streams(len(folders))} left out"


def _all_the_same(folders: Sequence[StreamFolder], url: str) -> str:
    return f"To send to {url} all the same: noisescale sync FOLDER, such as {folders[0].path}"


def _is_known_to_have_arrived(folder: StreamFolder) -> bool:
    try:
        return has_arrived(folder)
    except OSError:  # one folder that cannot be read is no reason not to send the others
        return False


def _streams(number: int) -> str:
    return "stream" if number == 1 else "streams"


def _print_totals(outcomes: Sequence[Outcome], folders: Sequence[StreamFolder]) -> None:
    """What became of all records."""
    num_sent = sum(outcome.num_delivered for outcome in outcomes)
    num_left = sum(outcome.num_left for outcome in outcomes)
    num_there = sum(outcome.num_there for outcome in outcomes)
    num_lost = sum(outcome.num_lost for outcome in outcomes)
    num_aside = sum(folder.num_quarantined() for folder in folders)
    num_unknown = len(folders) - len(outcomes)
    print(
        f"{len(folders)} {_streams(len(folders))}: {num_sent} records sent, "
        f"{num_there} there already, {num_left} left{f', {num_unknown} streams unknown' if num_unknown else ''}; "
        f"in all {num_lost} declared lost, {num_aside} in quarantine"
    )
    num_cut = sum(outcome.is_cut_off for outcome in outcomes)
    if num_cut:
        print(
            f"{num_cut} {_streams(num_cut)} of killed jobs: whether they had more than that on their way to the disk "
            "cannot be known"
        )
    num_damaged = sum(outcome.num_bytes_damaged for outcome in outcomes)
    if num_damaged:
        print(f"{num_damaged:,} bytes are damaged: records in them are lost, and are not among those declared lost")


def _sync(folder: StreamFolder, server: HttpServer, timeout_seconds: float) -> Outcome | None:
    """What became of a stream, said where there is something to say; None where that cannot be known."""
    name = f"run {folder.path.parent.name} stream {folder.path.name[:8]}"
    bar = _Bar(name)
    try:
        is_known = has_arrived(folder)
        folder.try_lock()  # where its writer is dead; else what it has written so far is sent
        outcome = deliver(folder, server, bar.report, timeout_seconds, PATIENCE_SECONDS)
    except (OSError, TransportError) as error:
        bar.clear()
        if folder.is_ours:
            folder.leave(str(error))
        print(f"{name}: {error}", file=sys.stderr)
        return None
    finally:
        folder.release()
    bar.clear()
    if outcome.num_left:
        print(f"{name}: {outcome.num_left} of {outcome.num_records} records left: {outcome.reason}", file=sys.stderr)
        return outcome
    lost = f", {outcome.num_lost} declared lost" if outcome.num_lost else ""
    if outcome.num_delivered or not is_known:
        print(f"{name}: {outcome.num_delivered} records sent, {outcome.num_records} in all{lost}")
        if outcome.is_cut_off:
            print(f"{name}: {end_of_a_killed_job(outcome.num_records, outcome.num_bytes_damaged)}")
    return outcome


class _Bar:
    """How far a stream is, in a line of the terminal that is written over; none where standard error is no terminal."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_shown = sys.stderr.isatty()
        self._said_at = -REPORT_SECONDS

    def report(self, num_acked: int, num_logged: int) -> None:
        now = time.monotonic()
        if self._is_shown and now - self._said_at >= REPORT_SECONDS:
            self._said_at = now
            share = num_acked / max(1, num_logged)
            bar = "█" * int(BAR_WIDTH * share)
            sys.stderr.write(f"\r{self._name} {bar:░<{BAR_WIDTH}} {num_acked:,} of {num_logged:,} records")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
