"""Whole stories: a world with faults, a spool that was damaged, a host that lost power; and the bugs they must show."""

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

from killable_postgres import KillablePostgres
from noisescale import commands
from noisescale.transport.spool import frames
from noisescale.transport.upload.left_behind import stream_folders
from torture import mutants, oracle
from torture.faults import KINDS, Faults
from torture.verdict import Verdict, judge
from torture.world import TOKEN, Process, World, world

RUN_ID = "00000000-0000-4000-8000-000000000001"
OTHER_RUN_ID = "00000000-0000-4000-8000-000000000002"

PAYLOAD_OF_TRACE = 7 * 8
"""Where a measurement's frame holds `sum_trace_cov`, from the beginning of its payload."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a world with faults.

    Attributes:
        verdict: What is stored beside what was accepted.
        injected: How many faults of each kind.
        landed: Of these, how many while unacknowledged records existed.
        has_drained: In the end everything has arrived.
        drain_seconds: How long that took after the last job had ended.
    """

    verdict: Verdict
    injected: Counter[str]
    landed: Counter[str]
    has_drained: bool
    drain_seconds: float


def tortured(
    folder: Path,
    postgres: KillablePostgres,
    *,
    num_faults: int,
    longest_freeze: float,
    mutant: str = "",
    kinds: dict[str, int] = KINDS,
    statuses: Sequence[int] = (),
    seed: int = 0,
) -> Outcome:
    """A world in which so many faults happen, and what is there when all have done what they can."""
    with world(folder, postgres, mutant=mutant, seed=seed) as opened:
        opened.start_writers()
        opened.until(lambda: opened.num_acked() > 100)
        faults = Faults(opened, longest_freeze=longest_freeze, statuses=statuses)
        faults.run(num_faults, kinds=kinds)
        opened.calm_down()
        start = time.monotonic()
        has_drained = opened.sync(600.0 if not mutant else 10.0)
        return Outcome(judge(opened), faults.injected, faults.landed, has_drained, time.monotonic() - start)


# ---- stories without luck


def damaged_spool(folder: Path, postgres: KillablePostgres, mutant: str) -> Verdict:
    """The disk has changed one bit of one record that was not sent yet: that one is declared lost, and no other."""
    with world(folder, postgres, mutant=mutant) as opened:
        run_until(opened, 300, {"NOISESCALE_MODE": "offline"})
        damage(opened)
        environment = {
            "NOISESCALE_DIR": str(folder / "state"),
            "NOISESCALE_API_KEY": opened.environment["NOISESCALE_API_KEY"],
        }
        with patch.dict(os.environ, environment), mutants.reading(mutant):
            commands.main(["sync", str(folder / "state"), "--url", opened.servers[0].url, "--timeout", "10"])
        found = judge(opened)
        return replace(found, lost=found.lost + max(0, found.declared - 1))


def lost_power(folder: Path, postgres: KillablePostgres, mutant: str) -> Verdict:
    """The host comes back with a spool that is behind the server: what is logged from then on is stored."""
    with world(folder, postgres, mutant=mutant) as opened:
        run_until(opened, 200, {"NOISESCALE_URL": opened.servers[0].url})
        assert opened.sync(60)
        forget_newest(opened, 50)
        settings = {
            "NOISESCALE_URL": opened.servers[0].url,
            "NOISESCALE_DIR": str(folder / "later"),
            "TORTURE_RESUMED_DIR": str(folder / "state"),
        }
        run_until(opened, 100, settings, is_killed=False)
        return judge(opened)


def run_until(opened: World, num_records: int, settings: dict[str, str], *, is_killed: bool = True) -> None:
    """A job of the same run that is killed after so many records, or finishes."""
    number = opened.next_writer()
    asked = 1_000_000 if is_killed else num_records
    arguments = ["torture.writer", f"--writer={number}", f"--oracle={opened.oracle}", f"--records={asked}"]
    environment = opened.environment | {"NOISESCALE_RUN_ID": RUN_ID} | settings
    process = Process(
        [*arguments, "--pause=0.001", f"--mutant={opened.mutant}"], environment, opened.folder / "writer.log"
    )
    path = opened.oracle / f"{number}.accepted"
    if is_killed:
        opened.until(lambda: path.exists() and len(oracle.read(path).places) >= num_records)
        process.kill()
    else:
        assert process.wait(60)


def two_servers(folder: Path, postgres: KillablePostgres, mutant: str) -> Verdict:
    """Jobs of two servers leave their records in one folder: each goes to its own, whoever sends first."""
    with (
        world(folder / "here", postgres, mutant=mutant) as here,
        world(folder / "there", postgres, mutant=mutant) as there,
    ):
        there.next_writer()  # no number is both worlds' own
        for opened, run_id in ((here, RUN_ID), (there, OTHER_RUN_ID)):
            settings = {"NOISESCALE_DIR": str(folder / "state"), "NOISESCALE_RUN_ID": run_id}
            run_until(opened, 300, settings | {"NOISESCALE_URL": opened.servers[0].url})
        for opened in (here, there):
            environment = {"NOISESCALE_DIR": str(folder / "state"), "NOISESCALE_API_KEY": TOKEN}
            with patch.dict(os.environ, environment), mutants.sending(mutant):
                commands.main(["sync", "--url", opened.servers[0].url, "--timeout", "30"])
        return judge(here) + judge(there)


def damage(opened: World) -> None:
    """Change a bit of the measurement in the middle of the only file."""
    [folder] = stream_folders(opened.spool)
    [path] = folder.segment_paths()
    content = bytearray(path.read_bytes())
    rows = [found for found in frames.frames_in(bytes(content)) if found.kind == 1]
    chosen = rows[len(rows) // 2]
    content[chosen.end - len(chosen.frame) + frames.HEADER_BYTES + PAYLOAD_OF_TRACE + 3] ^= 1
    path.write_bytes(content)


def forget_newest(opened: World, num_records: int) -> None:
    """Take the newest records off the only file, as a loss of power does."""
    [folder] = stream_folders(opened.spool)
    [path] = folder.segment_paths()
    content = path.read_bytes()
    path.write_bytes(content[: list(frames.frames_in(content))[-num_records].end - 200])


# ---- the bugs


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug, the story in which it must show, and the number that shows it."""

    story: Callable[[Path, KillablePostgres, str], Verdict]
    shows: str

    def is_caught(self, verdict: Verdict) -> bool:
        """Whether the number that shows it is not 0."""
        return bool(getattr(verdict, self.shows))


def hit(
    num_faults: int, statuses: Sequence[int] = (), **kinds: int
) -> Callable[[Path, KillablePostgres, str], Verdict]:
    """A story of so many faults of these kinds."""
    shares = {name.replace("_", " "): share for name, share in kinds.items()}

    def story(folder: Path, postgres: KillablePostgres, mutant: str) -> Verdict:
        settings = {"num_faults": num_faults, "kinds": shares, "statuses": statuses}
        return tortured(folder, postgres, longest_freeze=2.0, mutant=mutant, **settings).verdict

    return story


MUTANTS = {
    "no_dedupe": Mutant(hit(10, kill_server=100), "doubled"),
    "buffers_16": Mutant(hit(15, kill_client=100), "lost"),
    "asynchronous_commit": Mutant(hit(8, kill_postgres=100), "forgotten"),
    "ack_before_commit": Mutant(hit(10, kill_server=100), "forgotten"),
    "ack_file_first": Mutant(hit(20, kill_server=30, kill_client=70), "forgotten"),
    "resumes_stream": Mutant(lost_power, "lost"),
    "reader_without_crc": Mutant(damaged_spool, "wrong"),
    "reader_stops_at_damage": Mutant(damaged_spool, "lost"),
    "any_200_acknowledges": Mutant(hit(8, (200,), foreign_answer=100), "forgotten"),
    "any_413_rejects": Mutant(hit(8, (400, 413, 422), foreign_answer=100), "lost"),
    "silent_on_a_full_disk": Mutant(hit(6, full_disk_at_the_end=100), "lost"),
    "ends_every_stream": Mutant(hit(8, truncation=100), "lost"),
    "sends_everybodys": Mutant(two_servers, "wrong"),
}

STORIES = {"damaged spool": damaged_spool, "lost power": lost_power, "two servers": two_servers}
"""Those without luck, which must end well without a bug."""
