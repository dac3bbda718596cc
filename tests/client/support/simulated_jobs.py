"""Jobs behind a proxy that answers in the server's place, from the first record to the deletion of their folders.

A story: a job logs, and finishes or is killed; another one of the same user finds what it has left; `noisescale sync`
sends the rest; then eight days pass, three times, each with a short job that tidies up. In each of the first three the
proxy misbehaves at the beginning, in the middle or at the end. In the end every record is stored once or declared.
"""

import argparse
import contextlib
import io
import logging
import random
import shutil
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from unittest import mock

import httpx

from noisescale import outbox
from noisescale.commands import sync
from noisescale.config import Config
from noisescale.outbox import SPOOL, Outbox
from noisescale.transport.upload.http import HttpServer
from noisescale.transport.upload.left_behind import written_down
from noisescale.transport.wire import GroupRecord, MetricRecord, Record, RunRecord
from simulated_proxy import KINDS, STATUSES, Canned, SimulatedServer, Window, canned
from simulated_time import SimulatedTime

DAY = 86_400.0
BODY_LIMITS = (64 << 10, 1 << 20)
LAYERS = {None: 0, 64 << 10: 32, 1 << 20: 256}
"""Of a record, by the limit of a body: a full batch is over it, a single record is not."""


_ARGUMENTS = argparse.ArgumentParser()
sync.register(_ARGUMENTS.add_subparsers())


@dataclass(frozen=True, slots=True)
class Story:
    """What happens in one of many.

    Attributes:
        seed: Of its dice.
        answers: Of the proxy, one after another: two for each of the three phases.
        body_limit: Of the proxy.
        is_killed: The first job is killed; else it finishes.
        is_synced: Somebody runs `noisescale sync` once more, without a proxy, before the folders are tidied up.
    """

    seed: int
    answers: Sequence[Canned]
    body_limit: int | None
    is_killed: bool
    is_synced: bool

    @property
    def is_foreign(self) -> bool:
        """Whether nothing in it comes from a server of ours but what is true."""
        return all(answer.kind != "ours" for answer in self.answers)


Card = tuple[int, str]
"""A status and a kind of body."""


def cards_of(statuses: Iterable[int]) -> list[Card]:
    """All that the proxy can say with these; our own 200 is the server's to say."""
    return [(status, kind) for status in statuses for kind in KINDS if (status, kind) != (200, "ours")]


def stories(number: int, seed: int = 0, deck: Sequence[Card] = tuple(cards_of(STATUSES))) -> list[Story]:
    """So many, in which every card comes up where there are enough of them.

    Args:
        number: How many.
        seed: Of everything in them.
        deck: What the proxy says.
    """
    dice = random.Random(seed)
    found: list[Story] = []
    hand: list[Card] = []
    for at in range(number):
        while len(hand) < 6:
            hand += dice.sample(deck, len(deck))
        answers = [canned(*hand.pop(), dice) for _ in range(6)]
        limit = {3: BODY_LIMITS[0], 13: BODY_LIMITS[1]}.get(at % 20)
        found.append(Story(seed + at, answers, limit, dice.random() < 0.4, dice.random() < 0.5))
    return found


@dataclass
class Outcome:
    """What became of the records of a story.

    Attributes:
        num_logged: That a job was told are accepted.
        num_stored: Of which the server has, each counted once.
        num_doubled: Of which it has more than once.
        num_declared: That were declared lost: to the server, or in the book of the state folder.
        num_unsaid: Neither stored nor declared.
        num_untrue: Sentences at the end of a job that say what is not so.
        num_wrongly_ended: Deliveries that ended, and folders marked as refused, although no server had deleted the run;
            and those in which something of ours failed.
        answered: Status and kind of body of every answer of the proxy.
        num_too_large: Bodies that it found too large.
        seconds: Simulated ones, without the days of tidying up.
        said: What was logged as a warning, and printed.
    """

    num_logged: int = 0
    num_stored: int = 0
    num_doubled: int = 0
    num_declared: int = 0
    num_unsaid: int = 0
    num_untrue: int = 0
    num_wrongly_ended: int = 0
    answered: Counter[Card] = field(default_factory=Counter)
    num_too_large: int = 0
    seconds: float = 0.0
    said: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """Every record is stored once or declared, and what was said is true."""
        return not (self.num_doubled or self.num_unsaid or self.num_untrue or self.num_wrongly_ended)


class World:
    """One user's state folder, a server, a proxy and a clock.

    Args:
        folder: An empty one.
        seed: Of the dice.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.dice = folder, random.Random(seed)
        self.clock = SimulatedTime()
        self.server = SimulatedServer(self.clock, self.dice)
        self.url = f"http://simulated-{uuid.uuid4()}"
        self.config = Config(url=self.url, folders=(folder,), durability="direct")
        self.accepted: dict[str, set[int]] = {}
        self.said: list[str] = []
        self.num_untrue = 0
        self.num_wrongly_ended = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """The transport by this clock, with this server behind every address."""
        handler = logging.Handler()
        handler.emit = lambda record: self.said.append(record.getMessage())  # type: ignore[method-assign]
        logger = logging.getLogger("noisescale")
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.clock.patched())
            stack.enter_context(mock.patch.object(HttpServer, "_open", _opened_on(self.server)))
            stack.enter_context(mock.patch.object(logger, "propagate", new=False))
            logger.addHandler(handler)
            stack.callback(logger.removeHandler, handler)
            yield

    def job(
        self, windows: Sequence[Window], num_records: int, pause: float, num_layers: int = 0, *, killed: bool = False
    ) -> None:
        """A process that logs, and finishes or is killed."""
        outbox._adopted.clear()
        self.server.proxy.begin(windows)
        run_id, faults = str(uuid.uuid4()), []
        box = Outbox(run_id, self.config, lambda: RunRecord({"project": "demo"}, {}), faults.append)
        accepted = self.accepted.setdefault(run_id, set())
        for _ in range(num_records):
            number = sum(map(len, self.accepted.values()))
            box.send(_record(number, self.dice, num_layers))
            accepted.add(number)
            self.clock.sleep(pause * self.dice.random())
        if not killed:
            num_said = len(self.said)
            box.close(10.0)
            self._check_last_words(box, run_id, self.said[num_said:])
        self.clock.kill_others()
        assert box._uploader is not None
        self._check_ends(box._uploader.stop_reason is not None)
        if killed and box._disk is not None and box._disk.folder is not None:
            box._disk._segments.forget()
            box._disk.folder.release()
        self.num_wrongly_ended += bool(faults)
        self.said += [f"our own fault: {fault!r}" for fault in faults]

    def _check_ends(self, *has_stopped: bool) -> None:
        """Only the server ends a delivery, and only it makes a folder a refused one."""
        if not self.server.proxy.has_deleted:
            marked = (self.folder / SPOOL).glob("*/*/.refused")
            self.num_wrongly_ended += sum(has_stopped) + sum(1 for _ in marked)

    def _check_last_words(self, box: Outbox, run_id: str, said: Sequence[str]) -> None:
        """What is not delivered by these words is stored, if not declared lost."""
        account = box._stream.account()
        stream_id = box._stream.stream_id or ""
        stored = self.server.ledger.stored.get(stream_id, {})
        text = " ".join(said)
        is_true = len(stored) >= account.num_stored
        is_true &= (f"{account.num_kept} of {account.num_logged} records of run {run_id} were not" in text) == (
            account.num_kept > 0
        )
        folder = box._disk.folder if box._disk is not None else None
        is_true &= "kept: noisescale sync" not in text or (folder is not None and folder.path.is_dir())
        is_true &= not account.num_lost_by_reason or "are lost" in text
        self.num_untrue += not is_true

    def sync(self, windows: Sequence[Window] = ()) -> int:
        """`noisescale sync` of the state folder."""
        self.server.proxy.begin(windows)
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            code = sync.run(_ARGUMENTS.parse_args(["sync", str(self.folder), "--url", self.url, "--timeout", "3600"]))
        self.clock.kill_others()
        self.said += out.getvalue().splitlines()
        self._check_ends()
        outcome = self.outcome()
        self.num_untrue += code == 0 and outcome.num_unsaid > 0  # it says that the server has an account of everything
        return code

    def tidy_up(self) -> None:
        """Eight days later, a short job that finds what lies there."""
        self.clock.sleep(8 * DAY)
        self.server.proxy.begin()
        outbox._adopted.clear()
        self.job([], 3, 120.0)

    def outcome(self) -> Outcome:
        """What became of all records."""
        found = Outcome(said=self.said, num_untrue=self.num_untrue, num_wrongly_ended=self.num_wrongly_ended)
        stored = Counter[int]()
        for records in self.server.ledger.stored.values():
            stored.update(_number(kind, row) for kind, row in records.values() if kind in ("metrics", "groups"))
        declared_in_book = sum(one.num_records for one in written_down(self.folder / SPOOL))
        declared = sum(len(lost) for lost in self.server.ledger.lost.values()) + declared_in_book
        found.num_logged = sum(map(len, self.accepted.values()))
        found.num_stored = len(stored)
        found.num_doubled = sum(count > 1 for count in stored.values())
        found.num_declared = declared
        found.num_unsaid = max(0, found.num_logged - found.num_stored - declared)
        found.num_too_large = self.server.proxy.num_too_large
        return found


def _opened_on(server: SimulatedServer) -> Callable[[HttpServer], httpx.Client]:
    def open_(self: HttpServer) -> httpx.Client:
        if self._client is None:
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            transport = httpx.MockTransport(server.handle)
            self._client = httpx.Client(transport=transport, trust_env=False, cookies=no_cookies)
        return self._client

    return open_


def _record(number: int, dice: random.Random, num_layers: int) -> Record:
    if not num_layers:
        return MetricRecord(number, 0.0, {"n": float(number)})
    columns = [[dice.random() for _ in range(num_layers)] for _ in range(5)]
    return GroupRecord(number, 0.0, [f"layer-{at}" for at in range(num_layers)], [1] * num_layers, *columns)


def _number(kind: str, row: dict[str, object]) -> int:
    return int(row["value"] if kind == "metrics" else row["step"])  # type: ignore[call-overload]


def told(story: Story, folder: Path) -> Outcome:
    """What becomes of a story.

    Args:
        story: To tell.
        folder: Where to; it is deleted afterwards.
    """
    random.seed(story.seed)
    world = World(folder, story.seed)
    num_layers = LAYERS[story.body_limit]
    with world.running():
        world.server.proxy.body_limit = story.body_limit
        answered = Counter[Card]()
        for phase in range(3):
            windows = windows_of(world.dice, story.answers[2 * phase : 2 * phase + 2])
            if phase < 2:
                num_records, pause = _work(world.dice, is_heavy=num_layers > 0)
                is_killed = story.is_killed and phase == 0
                world.job(windows, num_records, pause, num_layers, killed=is_killed)
            else:
                world.sync(windows)
            for window in windows:
                answered[window.answer.status, window.answer.kind] += window.num_answers
        world.server.proxy.begin()
        seconds = world.clock.now - 1000.0
        if story.is_synced:
            world.sync()
        for _ in range(3):
            world.tidy_up()
        outcome = world.outcome()
    outcome.answered, outcome.seconds = +answered, seconds
    shutil.rmtree(folder, ignore_errors=True)
    return outcome


def _work(dice: random.Random, *, is_heavy: bool) -> tuple[int, float]:
    """How many records, and the longest pause after each: jobs of seconds, and of minutes."""
    if is_heavy:
        return dice.randint(40, 120), dice.choice((0.01, 0.5))
    return dice.randint(20, 200), dice.choice((0.01, 0.2, 3.0))


_AFTER: Mapping[str, Callable[[random.Random], tuple[float, int]]] = {
    "beginning": lambda dice: (0.0, 0),
    "middle": lambda dice: (dice.choice((0.0, 1.0)), dice.randint(1, 4)),
    "end": lambda dice: (4.0, dice.randint(1, 12)),
}
"""Seconds and requests of a phase before the proxy begins."""


def windows_of(dice: random.Random, answers: Sequence[Canned]) -> list[Window]:
    """When the proxy answers: at the beginning, in the middle or at the end of a phase."""
    found = []
    for answer in answers:
        seconds = 300.0 ** dice.random()
        after = _AFTER[dice.choice(tuple(_AFTER))](dice)
        found.append(Window(answer, *after, seconds))
    return found
