"""Where jobs send to: a server itself, or a proxy in front of it that may answer in its place."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING

from real_proxy import proxied
from simulated_proxy import STATUSES, Canned, Proxy, Window, canned

if TYPE_CHECKING:
    from torture.world import Server

FOREIGN = ("empty", "html", "json")
TELLING = (200, 204, 400, 401, 404, 409, 410, 413, 422, 503)
"""What would mean something, had the server said it: every other answer is one of these."""
UNREACHABLE = Canned(503, "html", b"<html><body>503 Service Unavailable</body></html>")


class Door:
    """A server itself.

    Attributes:
        server: Where requests arrive.
    """

    def __init__(self, server: "Server") -> None:
        self.server = server

    @property
    def url(self) -> str:
        """What jobs are told."""
        return self.server.url


class ProxiedDoor(Door):
    """A proxy: what it says in the server's place is never the server's own problem."""

    def __init__(self, server: "Server", stack: ExitStack) -> None:
        super().__init__(server)
        self._proxy = Proxy(time.monotonic)
        self._url = stack.enter_context(proxied(self._proxy, lambda: self.server.url))

    @property
    def url(self) -> str:
        """What jobs are told, wherever it leads to."""
        return self._url

    def answer_itself(self, seconds: float, random: Random, statuses: Sequence[int] = ()) -> None:
        """Say the same to everything for a while: any status, with nothing, a page or JSON of somebody else.

        Args:
            seconds: How long.
            random: Chooses.
            statuses: One of these instead.
        """
        usual = TELLING if random.random() < 0.5 else STATUSES
        said = canned(random.choice(statuses or usual), random.choice(FOREIGN), random)
        self._proxy.begin([Window(said, after_seconds=0, after_requests=0, seconds=seconds)])

    def shut(self) -> None:
        """Let nobody through until it opens."""
        self._proxy.begin([Window(UNREACHABLE, after_seconds=0, after_requests=0, seconds=3600)])

    def limit_bodies(self, num_bytes: int) -> None:
        """Refuse what is longer, as nginx does beyond its limit, until it opens."""
        self._proxy.body_limit = num_bytes

    def open(self) -> None:
        """Hand everything on."""
        self._proxy.begin()
        self._proxy.body_limit = None


def doors_of(servers: "list[Server]", stack: ExitStack) -> Iterator[Door]:
    """Two of each server."""
    for server in servers:
        yield Door(server)
        yield ProxiedDoor(server, stack)
