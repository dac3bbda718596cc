"""`noisescale demo --data`: real runs of noisescale's own, so that every page can be seen full without training.

They ship with the server as the requests that their trainings sent (`examples/record_demo_data.py`), and take the same
way as a job's: the stream protocol and REST. Ids are those of the recording, so a second time brings no new row.
"""

import argparse
import json
import lzma
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from noisescale.commands.on_server import add_url, ask_server
from noisescale.lazy import INSTALL_SERVER
from noisescale.stored.api import ROOT, Api, Refused

GROUP = "noisescale.demo_data"
"""Entry point: a function without arguments that gives the file of requests."""

FORMAT = 1
BUSY = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE)
BUSY_SECONDS = 0.5
MOST_TRIES = 40
WITHOUT_DATA = (
    "say what to show: `noisescale demo --data` loads runs that were trained before; "
    "in a checkout `make demo` trains four while you watch"
)

Request = Mapping[str, Any]


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = subparsers.add_parser("demo", help="load real runs, sweeps and a branch, to see every page full")
    parser.add_argument("--data", action="store_true", help="load them into the server; a second time changes nothing")
    add_url(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """0 where all is there; 1 without an answer, or where something was refused; 2 for wrong arguments."""
    if not arguments.data:
        print(f"noisescale demo: {WITHOUT_DATA}", file=sys.stderr)
        return 2
    file = data_file()
    if file is None:
        print(
            f"noisescale demo: the runs are part of noisescale-server, not installed: {INSTALL_SERVER}", file=sys.stderr
        )
        return 2
    return ask_server("demo", arguments.url, lambda api: _load_and_tell(api, file))


def data_file() -> Path | None:
    """The requests that ship with the server; None where it is not installed."""
    for entry_point in entry_points(group=GROUP):
        find: Callable[[], Path] = entry_point.load()
        return find()
    return None


@dataclass
class Loaded:
    """What became of the requests.

    Attributes:
        num_records: Records of streams that the server has now and had not before.
        num_known: Those that it had.
        num_others: Sweeps, curves, findings and settings that are new.
        left_out: What was not loaded and why, each sentence once.
    """

    num_records: int = 0
    num_known: int = 0
    num_others: int = 0
    left_out: list[str] = field(default_factory=list)


def _load_and_tell(api: Api, file: Path) -> int:
    began = time.monotonic()
    provenance, *requests = [json.loads(line) for line in lzma.decompress(file.read_bytes()).splitlines()]
    print(f"{provenance['runs']} runs, trained on {provenance['made_at'][:10]}: {provenance['data']}")
    loaded = load(api, requests)
    for sentence in loaded.left_out:
        print(sentence)
    print(told(loaded, time.monotonic() - began))
    if not (loaded.num_records or loaded.num_others or loaded.num_known):
        return 1
    print(f"projects demo, examples and reproduce at {api.url}")
    return 1 if loaded.left_out else 0


def told(loaded: Loaded, seconds: float) -> str:
    """What became of the data, in a sentence.

    Args:
        loaded: What the server has taken.
        seconds: That it took.
    """
    if loaded.num_records or loaded.num_others:
        return f"{loaded.num_records:,} records and {loaded.num_others} other rows are new, after {seconds:.1f} s"
    if loaded.num_known:
        return f"all {loaded.num_known:,} records were there already: nothing is new"
    return "nothing was loaded"


def load(api: Api, requests: Sequence[Request]) -> Loaded:
    """Send what the server lacks.

    Args:
        api: Of the server.
        requests: In the order of the recording.

    Raises:
        TransportError: Without an answer.
    """
    loaded = Loaded()
    cursors: dict[str, int] = {}
    for request in requests:
        path = request["path"].removeprefix(ROOT)
        try:
            if path.endswith("/batches"):
                _send_batch(api, path, request["body"], cursors, loaded)
            elif _is_missing(api, path, request["body"]):
                _send(api, request["method"], path, request["body"])
                loaded.num_others += 1
        except Refused as refused:
            sentence = f"left out: {refused}"
            if sentence not in loaded.left_out:
                loaded.left_out.append(sentence)
    return loaded


def _send_batch(api: Api, path: str, body: Request, cursors: dict[str, int], loaded: Loaded) -> None:
    """Send a batch, unless the server has an account of all of it."""
    if path not in cursors:
        cursors[path] = _cursor(api, path.removesuffix("/batches"))
    num_there = min(body["last_seq"], max(cursors[path], body["first_seq"] - 1)) - body["first_seq"] + 1
    loaded.num_known += num_there
    if cursors[path] >= body["last_seq"]:
        return
    _send(api, "POST", path, body)
    cursors[path] = body["last_seq"]
    loaded.num_records += body["last_seq"] - body["first_seq"] + 1 - num_there


def _cursor(api: Api, path: str) -> int:
    """Up to which record the server has a stream; 0 where it has none of it."""
    try:
        return int(api.get(path)["acked_seq"])
    except Refused as refused:
        if refused.problem == "stream-not-found":
            return 0
        raise


def _is_missing(api: Api, path: str, body: Request) -> bool:
    """Whether the server lacks what a request brings; settings that somebody has made since stay as they are."""
    if path == "/sweeps":
        return _found(api, f"/sweeps/{body['id']}") is None
    if path.startswith("/sweeps/"):
        stored = _found(api, path.removesuffix("/runs"))
        known = {one["run_id"] for one in stored["runs"]} if stored else set()
        return any((one.get("run_id") or one["id"]) not in known for one in body["runs"])
    if path == "/reproductions":
        wanted = ("claim" if body.get("claim") else "advice", body["effort"], body["seed"])
        known = api.get(path, project=body["project"])["reproductions"]
        return wanted not in [(one["kind"], one["effort"], one["seed"]) for one in known]
    if path.endswith("/defaults"):
        return not any(api.get(path)[name] for name in ("device_hour_price", "preference", "examples_per_step"))
    return not api.get(path)["rules"]


def _found(api: Api, path: str) -> Mapping[str, Any] | None:
    """The answer to a question; None where there is no such thing."""
    try:
        return api.get(path)
    except Refused as refused:
        if refused.status == HTTPStatus.NOT_FOUND:
            return None
        raise


def _send(api: Api, method: str, path: str, body: Request) -> None:
    """Send a request, and again while the server says that it is busy.

    Raises:
        Refused: If it says anything else, or goes on to say that.
    """
    for _ in range(MOST_TRIES):
        try:
            api.send(method, path, body)
        except Refused as refused:
            if refused.status not in BUSY:
                raise
            time.sleep(BUSY_SECONDS)
        else:
            return
    api.send(method, path, body)
