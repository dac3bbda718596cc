"""`noisescale report`: a run's recommendation as one file that prints on two pages, with or without a server."""

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from noisescale.ask.asking import with_query
from noisescale.commands.question_options import NAMES, add_question_options, given_options, number
from noisescale.commands.records_as_server import NoServerHere, OnServer, records_as_server, run_of
from noisescale.config import Config
from noisescale.outbox import SPOOL
from noisescale.stored.api import Api, Refused
from noisescale.stored.finding import NotFound, as_id, find_run, in_address
from noisescale.transport.spool.stream_folder import StreamFolder
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.left_behind import stream_folders
from noisescale.version import __version__
from noisescale_core.advice.question import SWITCHES, Question
from noisescale_core.errors import ConfigError, TransportError

GENERATOR = 'content="noisescale report'
"""In every report, and in no other page that a server may answer with."""
PREFERENCE = "pref"
MAX_LISTED = 10


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks for.

    Attributes:
        said: What a run on a server is called, or its id; None: all runs of `folder`.
        folder: With records; None: on a server.
        config: Where the server is.
        question: What decides besides the measurement.
        output: The file to write, or a folder for one file a run; None: named after the run.
    """

    said: str | None
    folder: Path | None
    config: Config
    question: Question
    output: Path | None


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("report", help="write a run's recommendation as one file that prints on two pages")
    parser.add_argument(
        "subject",
        metavar="RUN_OR_FOLDER",
        help="a run's name, id or the address of its page; or a folder with records, which needs no server",
    )
    parser.add_argument(
        "-o", "--output", type=Path, help="the file (report-….html); for several runs a folder that is there"
    )
    parser.add_argument("--url", help="ask this server instead of the configured one")
    add_question_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 with all reports written; 1 where one could not be; 2 for wrong arguments."""
    try:
        asked = _asked(arguments)
        _refuse_unwritable(asked.output)
        if asked.folder is None:
            return _from_server(asked)
        return _from_folder(asked, asked.folder)
    except ConfigError as error:
        print(f"noisescale report: {error}", file=sys.stderr)
        return 2
    except (TransportError, NoServerHere, NoReport, OSError) as error:
        print(f"noisescale report: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("noisescale report: interrupted, nothing was written", file=sys.stderr)
    return 1


class NoReport(Exception):
    """The server gives none."""


def _asked(arguments: argparse.Namespace) -> Asked:
    """What is meant.

    Raises:
        ConfigError: For something that is neither a run nor a folder, and for numbers that make no sense.
    """
    given = given_options(arguments)
    folder = Path(arguments.subject)
    if folder.is_dir():
        return Asked(None, folder.resolve(), Config.from_env(), Question.of(given), arguments.output)
    address = urlsplit(arguments.subject)
    if address.scheme not in ("http", "https"):
        said, url = arguments.subject, arguments.url
    else:
        said, url = in_address(arguments.subject), arguments.url or _server_of(arguments.subject)
        given = {**_values_in(address.query), **given}
        if as_id(said) is None:
            raise ConfigError(f"{said!r} is no page of a run: its address ends in /runs/ and the run's id")
    return Asked(said, None, Config.from_env(url=url), Question.of(given), arguments.output)


def _server_of(address: str) -> str:
    return address[: address.find("/runs/")] if "/runs/" in address else address


def _values_in(query: str) -> dict[str, object]:
    """What the address of a page says of preference and limits; the rest of its view is not for a report."""
    known = {PREFERENCE: "preference"} | {name: name for name in NAMES}
    given: dict[str, object] = {}
    for name, text in parse_qsl(query):
        if name in known:
            with contextlib.suppress(ValueError):
                given[known[name]] = text == "true" if known[name] in SWITCHES else number(text)
    return given


def _refuse_unwritable(output: Path | None) -> None:
    """Raise unless the report can be written: to find that out at the end would waste minutes.

    Raises:
        OSError: Otherwise.
    """
    folder = Path() if output is None else output if output.is_dir() else output.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: make it, or give another --output")
    if not os.access(folder, os.W_OK) or (output is not None and output.is_file() and not os.access(output, os.W_OK)):
        raise PermissionError(f"{output or folder} cannot be written to: give another --output")


def _from_server(asked: Asked) -> int:
    assert asked.said is not None, "the caller has looked"
    config = asked.config
    server = HttpServer(config.url, config.api_key, f"noisescale/{__version__}")
    _tell(f"asking {config.url}")
    try:
        run_id = _run_id(Api(server), asked.said)
        text = _report(server, run_id, asked.question)
    except TransportError as error:
        raise TransportError(f"{error}; {_way_out(config, asked.said)}") from error
    finally:
        server.close()
    _write(text, _path_for(asked.output, run_id))
    return 0


def _run_id(api: Api, said: str) -> str:
    """The id of the run that is meant; a whole id is taken as it is.

    Raises:
        ConfigError: If no run is called so, or several are.
        NoReport: Where the server refuses to look.
        TransportError: Without an answer.
    """
    try:
        return as_id(said) or str(find_run(api, said)["id"])
    except NotFound as error:
        raise ConfigError(f"{said!r} is no folder, and no run: {error}") from error
    except Refused as error:
        raise NoReport(f"{api.url}: {error}") from error


def _way_out(config: Config, said: str) -> str:
    """What to do where no server answers: the records of the run may lie on this machine."""
    run_id = as_id(said)
    here = [] if run_id is None else [root / SPOOL / run_id for root in config.folders]
    found = next((folder for folder in here if folder.is_dir()), None)
    if found is not None:
        return f"its records are here: noisescale report {found}"
    return "give the run's folder of records instead, or start a server with `noisescale up`"


def _from_folder(asked: Asked, folder: Path) -> int:
    streams = [one for one in stream_folders(folder) if not one.has_moved]
    run_ids = sorted({run_of(one) for one in streams})
    if not run_ids:
        raise FileNotFoundError(
            f"{folder} holds no records of this user: give the folder that a job has named, or that of a run below "
            f"{SPOOL}/"
        )
    if len(run_ids) > 1 and not (asked.output is not None and asked.output.is_dir()):
        listed = "\n  ".join(str(_folder_of(run_id, streams)) for run_id in run_ids[:MAX_LISTED])
        raise ConfigError(
            f"{folder} holds {len(run_ids)} runs: give the folder of one, or --output with a folder for one file each, "
            f"such as\n  {listed}"
        )
    with (
        tempfile.TemporaryDirectory(prefix="noisescale-report-") as copies,
        records_as_server(streams, copies=Path(copies), read_from=str(folder), tell=_tell) as replayed,
    ):
        return max(_write_replayed(asked, replayed, run_id) for run_id in run_ids)


def _folder_of(run_id: str, streams: Sequence[StreamFolder]) -> Path:
    return next(one.path.parent for one in streams if run_of(one) == run_id)


def _write_replayed(asked: Asked, replayed: OnServer, run_id: str) -> int:
    try:
        text = _report(replayed.server, run_id, asked.question)
    except NoReport as error:
        _tell(f"run {run_id}: {error}")
        return 1
    _write(text, _path_for(asked.output, run_id))
    return 0


def _report(server: HttpServer, run_id: str, question: Question) -> str:
    """The document.

    Raises:
        ConfigError: Where the server refuses the question.
        NoReport: Where it knows no such run, or shows no reports.
        TransportError: Without an answer.
    """
    answer = server.request("GET", with_query(f"/api/v1/runs/{run_id}/recommendation", question))
    if answer.status == 422:
        raise ConfigError(_detail(answer.body, answer.status))
    if answer.status != 200:
        raise NoReport(f"{server.url}: {_detail(answer.body, answer.status)}")
    said = {} if question.preference is None else {PREFERENCE: str(question.preference)}
    page = with_query(f"/runs/{run_id}/report", replace(question, preference=None), **said)
    status, text = server.read(page)
    if status != 200 or GENERATOR not in text:
        raise NoReport(
            f"the server at {server.url} shows no reports (status {status}): it needs the dashboard of this version: "
            "in a checkout of noisescale, pip install ./dashboard"
        )
    return text


def _detail(body: Mapping[str, object], status: int) -> str:
    return str(body.get("detail") or body.get("title") or f"status {status}")


def _path_for(output: Path | None, run_id: str) -> Path:
    name = f"report-{run_id[:8]}.html"
    if output is None:
        return Path(name)
    return output / name if output.is_dir() else output


def _write(text: str, path: Path) -> None:
    """Write the file whole, or leave it as it was before.

    Raises:
        OSError: Where it cannot be written.
    """
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(aside, 0o644)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
    print(path)


def _tell(words: str) -> None:
    print(words, file=sys.stderr, flush=True)
