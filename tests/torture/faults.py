"""What happens to the processes, one fault after another, and whether anybody had something to lose at that moment."""

import asyncio
import math
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from noisescale.transport.spool.frames import frames_in
from torture.doors import Door, ProxiedDoor
from torture.world import Server, World, Writer

FREEZE_SECONDS = (0.2, 30.0)
PATIENCE_SECONDS = 1.0
FULL_FOR_SECONDS = 0.3
ENDS_WITHIN_SECONDS = 60.0
BODY_LIMITS = (100, 2_000, 65_536)
"""Bytes: below one record's, that of a few, and the proxy's usual one."""

KINDS = {
    "kill client": 32,
    "kill server": 12,
    "kill backend": 9,
    "kill postgres": 6,
    "freeze": 11,
    "foreign answer": 14,
    "body limit": 4,
    "other server": 4,
    "full disk at the end": 4,
    "truncation": 4,
}
"""How often each, of a hundred."""


@dataclass
class Faults:
    """Injects faults into a world and counts them.

    Attributes:
        statuses: What proxies say; none named: anything.
        injected: How many of each kind.
        landed: Of these, how many while unacknowledged records existed.
    """

    world: World
    longest_freeze: float = FREEZE_SECONDS[1]
    statuses: Sequence[int] = ()
    injected: Counter[str] = field(default_factory=Counter)
    landed: Counter[str] = field(default_factory=Counter)
    _thaws: list[threading.Timer] = field(default_factory=list)
    _frozen: set[object] = field(default_factory=set)
    _acked_at_last_restart: int = -1

    def inject(self, kind: str) -> bool:
        """Whether a fault of this kind could be done now."""
        act: dict[str, Callable[[], list[Writer] | None]] = {
            "kill client": self._kill_client,
            "kill server": self._kill_server,
            "kill backend": self._kill_backend,
            "kill postgres": self._kill_postgres,
            "freeze": self._freeze,
            "foreign answer": self._answer_instead,
            "body limit": self._limit_bodies,
            "other server": self._lead_elsewhere,
            "full disk at the end": self._end_on_full_disk,
            "truncation": self._truncate,
        }
        # what those that are hit had to lose is counted just before, by the act itself
        done = act[kind]()
        if done is None:
            return False
        self.injected[kind] += 1
        self.landed[kind] += self._num_unacked > 0
        return True

    def run(self, num_faults: int, *, pause_seconds: float = 0.3, kinds: dict[str, int] | None = None) -> None:
        """So many faults in random order, of which each kind has its share."""
        shares = kinds or KINDS
        random = self.world.random
        while sum(self.injected.values()) < num_faults:
            time.sleep(random.uniform(0, pause_seconds))
            self.world.revive()
            missing = {kind: share * num_faults / 100 - self.injected[kind] for kind, share in shares.items()}
            weights = [max(0.1, left) for left in missing.values()]
            self.inject(random.choices([*missing], weights)[0])
        self.thaw()

    def thaw(self) -> None:
        """What is frozen goes on."""
        for timer in self._thaws:
            timer.cancel()
            timer.join()
        self._thaws.clear()
        self.world.postgres.thaw()
        for proxy in self.world.proxies:
            proxy.open()
        for one in (*self.world.writers, *self.world.servers):
            one.process.signal(signal.SIGCONT)
        self._frozen.clear()

    # ---- one fault each; None where nobody is there to be hit

    def _see(self, writers: list[Writer]) -> list[Writer]:
        """Those that will be hit, when they have something to lose: a job that has just started waits for nobody."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self._num_unacked = sum(writer.num_unacked() for writer in writers)
            if self._num_unacked or time.monotonic() > deadline:
                return writers
            time.sleep(0.01)

    def _kill_client(self) -> list[Writer] | None:
        alive = [writer for writer in self.world.writers if writer.process.is_alive]
        busy = [writer for writer in alive if writer.num_unacked()] or alive
        if not busy:
            return None
        hit = self.world.random.choice(busy)
        self._see([hit])
        hit.process.kill()
        self._frozen.discard(hit)
        hit.start(is_resumed=self.world.random.random() < 0.5)
        return [hit]

    def _kill_server(self) -> list[Writer] | None:
        ready = [one for one in self.world.servers if one.process.is_alive and (one in self._frozen or one.is_ready)]
        if not ready:
            return None
        hit: Server = self.world.random.choice(ready)
        clients = self._see([writer for writer in self.world.writers if writer.server is hit])
        hit.process.kill()
        self._frozen.discard(hit)
        hit.start()
        return clients

    def _is_postgres_at_work(self) -> bool:
        """Whether anything has been stored since it was hit the last time."""
        return "postgres" not in self._frozen and self.world.num_acked() > self._acked_at_last_restart

    def _kill_backend(self) -> list[Writer] | None:
        if not self._is_postgres_at_work():
            return None
        clients = self._see(self.world.writers)
        self._acked_at_last_restart = self.world.num_acked()
        return clients if self.world.postgres.kill_one_backend() else None

    def _kill_postgres(self) -> list[Writer] | None:
        if not self._is_postgres_at_work():
            return None
        clients = self._see(self.world.writers)
        self._acked_at_last_restart = self.world.num_acked()
        self.world.postgres.kill()
        self.world.postgres.start()
        asyncio.run(self.world.postgres.until_ready())
        return clients

    def _freeze(self) -> list[Writer] | None:
        """SIGSTOP of one process, or of all of Postgres, for 0.2 s to the longest, as many short as long ones."""
        random = self.world.random
        seconds = self._seconds()
        target = random.choice([*self.world.writers, *self.world.servers, "postgres"])
        if target in self._frozen:
            return None
        if target == "postgres":
            return self._freeze_postgres(min(seconds, self.longest_freeze / 3))
        if not target.process.is_alive:
            return None
        hit = [target] if isinstance(target, Writer) else self._clients_of(target)
        self._see(hit)
        process = target.process
        process.signal(signal.SIGSTOP)
        self._thaw_later(target, seconds, lambda: process.signal(signal.SIGCONT))
        return hit

    def _clients_of(self, server: Server) -> list[Writer]:
        return [writer for writer in self.world.writers if writer.server is server]

    def _freeze_postgres(self, seconds: float) -> list[Writer] | None:
        if not self._is_postgres_at_work():
            return None
        clients = self._see(self.world.writers)
        self._acked_at_last_restart = self.world.num_acked()
        self.world.postgres.freeze()
        self._thaw_later("postgres", seconds, self.world.postgres.thaw)
        return clients

    def _thaw_later(self, target: object, seconds: float, thaw: Callable[[], None]) -> None:
        self._frozen.add(target)

        def wake() -> None:
            thaw()
            self._frozen.discard(target)

        timer = threading.Timer(seconds, wake)
        timer.daemon = True
        timer.start()
        self._thaws.append(timer)

    # ---- what stands between a job and its server

    def _through(self, door: Door) -> list[Writer]:
        return self._see([writer for writer in self.world.writers if writer.door is door])

    def _answer_instead(self) -> list[Writer] | None:
        """A proxy says something of its own to everybody, for as long as something may be frozen."""
        door = self.world.random.choice(self.world.proxies)
        clients = self._through(door)
        door.answer_itself(self._seconds(), self.world.random, self.statuses)
        return clients

    def _limit_bodies(self) -> list[Writer] | None:
        """A proxy refuses bodies as long as any batch, or as most of them."""
        doors = [door for door in self.world.proxies if door not in self._frozen]
        if not doors:
            return None
        door = self.world.random.choice(doors)
        clients = self._through(door)
        door.limit_bodies(self.world.random.choice(BODY_LIMITS))
        self._thaw_later(door, self._seconds(), door.open)
        return clients

    def _lead_elsewhere(self) -> list[Writer] | None:
        """A proxy hands on to the other server, in the middle of what it was handing to this one."""
        door = self.world.random.choice(self.world.proxies)
        clients = self._through(door)
        [door.server] = [server for server in self.world.servers if server is not door.server]
        return clients

    def _seconds(self) -> float:
        low, high = FREEZE_SECONDS[0], self.longest_freeze
        return math.exp(self.world.random.uniform(math.log(low), math.log(high)))

    # ---- what a disk does

    def _end_on_full_disk(self) -> list[Writer] | None:
        """A job ends when neither the disk nor the server takes what it has in memory."""
        ending = [
            writer
            for writer in self.world.writers
            if isinstance(writer.door, ProxiedDoor)
            and writer.process.is_alive
            and self._frozen.isdisjoint((writer, writer.door))
        ]
        if not ending:
            return None
        hit = self.world.random.choice(ending)
        assert isinstance(hit.door, ProxiedDoor)
        hit.door.shut()
        hit.process.signal(signal.SIGUSR1)
        self._see([hit])
        time.sleep(FULL_FOR_SECONDS)
        hit.process.signal(signal.SIGTERM)
        if not hit.process.wait(ENDS_WITHIN_SECONDS):
            raise TimeoutError("a job does not end on a full disk")
        hit.door.open()
        return [hit]

    def _truncate(self) -> list[Writer] | None:
        """A host loses power: a job is gone, and so is the end of what it had written."""
        alive = [writer for writer in self.world.writers if writer.process.is_alive and writer.newest_file()]
        if not alive:
            return None
        hit = self.world.random.choice(alive)
        self._see([hit])
        hit.process.kill()
        self._frozen.discard(hit)
        newest = hit.newest_file()
        if newest is not None:
            self.world.cut |= self._cut_off_end(*newest)
        hit.start(is_resumed=self.world.random.random() < 0.5)
        return [hit]

    def _cut_off_end(self, stream_id: str, path: Path) -> set[tuple[str, int]]:
        """Take up to half off a file; which records that were."""
        content = path.read_bytes()
        kept = self.world.random.randint(len(content) // 2, len(content) - 1)
        os.truncate(path, kept)
        left = {found.seq for found in frames_in(content[:kept])}
        return {(stream_id, found.seq) for found in frames_in(content)} - {(stream_id, seq) for seq in left}
