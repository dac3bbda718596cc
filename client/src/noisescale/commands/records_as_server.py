"""Records on disk behind a server of their own: copies are sent to one that is thrown away, the originals stay."""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from noisescale.lazy import INSTALL_SERVER
from noisescale.transport.spool.stream_folder import GIVEN_UP, StreamFolder
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.late_delivery import deliver
from noisescale.version import __version__
from noisescale_core.errors import TransportError

GROUP = "noisescale.throw_away"
"""Entry points: `read_from` -> a context manager that gives address and key of an empty server."""
STREAM_SECONDS = 3600.0
TELL_SECONDS = 2.0

Tell = Callable[[str], None]
ThrowAway = Callable[[str], AbstractContextManager[tuple[str, str]]]


class NoServerHere(Exception):
    """There is nothing on this machine that could read the records."""


@dataclass(frozen=True, slots=True)
class OnServer:
    """A server that has the records; `num_left` of them it could not be given."""

    server: HttpServer
    num_left: int


@contextlib.contextmanager
def records_as_server(
    streams: Sequence[StreamFolder], *, copies: Path, read_from: str, tell: Tell
) -> Iterator[OnServer]:
    """A server with everything that can be read of these streams; it is gone after the block.

    Args:
        streams: Where they lie; nothing is changed there.
        copies: An empty folder.
        read_from: What the server's pages name as their origin.
        tell: Told how far it is, and what cannot be read.

    Raises:
        NoServerHere: Where none is installed, or its database cannot run.
    """
    throw_away = _installed()
    copied = [copy for one in streams if (copy := _copied(one, copies, tell)) is not None]
    with contextlib.ExitStack() as stack:
        tell("starting a server that is thrown away afterwards")
        try:
            url, key = stack.enter_context(throw_away(read_from))
        except (RuntimeError, OSError) as error:
            raise NoServerHere(f"no server can be started to read the records: {error}") from error
        server = HttpServer(url, key, f"noisescale/{__version__}")
        stack.callback(server.close)
        yield OnServer(server, sum(_sent(copy, server, tell) for copy in copied))


def _installed() -> ThrowAway:
    found: list[EntryPoint] = list(entry_points(group=GROUP))
    try:
        loaded: ThrowAway = found[0].load()
    except (IndexError, ImportError, AttributeError) as error:
        reason = "" if isinstance(error, IndexError) else f" ({error})"
        raise NoServerHere(
            f"a server reads records and a dashboard draws them, and there is none installed here{reason}: "
            f"{INSTALL_SERVER}; or send the records to a server elsewhere with `noisescale sync`"
        ) from error
    return loaded


def run_of(folder: StreamFolder) -> str:
    """The run of a stream: what its writer has noted, wherever the folder was copied to since."""
    noted = folder.meta().get("run_id")
    return noted if isinstance(noted, str) and noted.count("/") == 0 else folder.path.parent.name


def _copied(folder: StreamFolder, copies: Path, tell: Tell) -> StreamFolder | None:
    """The stream at another place: as far as it is written, and never said to have arrived anywhere."""
    target = copies / run_of(folder) / folder.path.name
    if target.exists():
        tell(f"{folder.path} is a copy of another folder here, and is left out")
        return None
    target.mkdir(parents=True)
    for path in (*folder.segment_paths(), *folder.path.glob(GIVEN_UP)):
        try:
            shutil.copyfile(path, target / path.name, follow_symlinks=False)
        except OSError as error:
            tell(f"{path} cannot be read and is left out: {error}")
    return StreamFolder(target) if any(target.iterdir()) else None


def _sent(folder: StreamFolder, server: HttpServer, tell: Tell) -> int:
    """How many records of a stream the server could not be given."""
    name = f"run {folder.path.parent.name} stream {folder.path.name[:8]}"
    try:
        outcome = deliver(folder, server, _Progress(name, tell).report, STREAM_SECONDS)
    except (OSError, TransportError) as error:
        tell(f"{name}: {error}")
        return 1
    lost = f", {outcome.num_lost} of them lost or damaged" if outcome.num_lost else ""
    left = f"; {outcome.num_left} are left out: {outcome.reason}" if outcome.num_left else ""
    tell(f"{name}: {outcome.num_records} records{lost}{left}")
    return outcome.num_left


class _Progress:
    """A line every two seconds."""

    def __init__(self, name: str, tell: Tell) -> None:
        self._name = name
        self._tell = tell
        self._told_at = time.monotonic()

    def report(self, num_acked: int, num_logged: int) -> None:
        now = time.monotonic()
        if now - self._told_at >= TELL_SECONDS:
            self._told_at = now
            self._tell(f"{self._name}: {num_acked} of {num_logged} records, {100 * num_acked // max(1, num_logged)} %")
