"""What was accepted beside what is stored: each record once, with what was logged, or declared lost."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from noisescale_server.services.ingest import ledger
from noisescale_server.storage.access.visibility import session_factory
from noisescale_server.storage.ingest.ledger import REJECTED
from noisescale_server.storage.platform.engine import create_engine
from torture import content, oracle
from torture.content import Row
from torture.serving import num_redelivered
from torture.world import World


@dataclass(frozen=True, slots=True)
class Verdict:
    """Numbers of records, but for the last two.

    Attributes:
        accepted: Calls that had returned.
        stored: Of all records with a number of ours.
        lost: Accepted, not stored, and nobody has said so.
        declared: Accepted, not stored, and declared lost with a reason, each by its own number.
        declared_otherwise: Of these, for another reason than that the disk was full.
        cut: Accepted, not stored, and cut off the file of a dead job, of whose stream nobody says that it has ended.
        doubled: Stored more than once.
        wrong: Stored with other content than logged, or never logged.
        forgotten: Acknowledged, and then not there when a job came back to it.
        redelivered: Sent again and dropped by the server.
        conflicts: Streams that had to begin anew because the server had other content under their numbers.
        wrong_ledgers: Streams whose ledger is not true.
    """

    accepted: int
    stored: int
    lost: int
    declared: int
    declared_otherwise: int
    cut: int
    doubled: int
    wrong: int
    forgotten: int
    redelivered: int
    conflicts: int
    wrong_ledgers: int

    def __add__(self, other: "Verdict") -> "Verdict":
        """The numbers of two worlds."""
        return Verdict(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @property
    def is_good(self) -> bool:
        """Whether no record was lost, doubled, changed or forgotten."""
        return not any((self.lost, self.doubled, self.wrong, self.forgotten, self.conflicts, self.wrong_ledgers))


def judge(world: World) -> Verdict:
    """What the database holds against what the oracle knows."""
    return asyncio.run(_judge(world))


async def _judge(world: World) -> Verdict:
    accepted = list(oracle.read_all(world.oracle))
    numbers = {
        writer.writer * content.PER_WRITER + index: place
        for writer in accepted
        for index, place in writer.places.items()
    }
    counts, num_wrong = await _stored(world)
    may_be = numbers.keys() | {writer.writer * content.PER_WRITER + len(writer.places) for writer in accepted}
    missing = {place for number, place in numbers.items() if number not in counts}
    reasons = await _declared(world)
    declared = missing & reasons.keys()
    ended = await _ended(world)
    cut = {place for place in (missing - declared) & world.cut if place[0] not in ended}
    num_stored = sum(counts.values())
    return Verdict(
        accepted=len(numbers),
        stored=num_stored,
        lost=len(missing - declared - cut),
        declared=len(declared),
        declared_otherwise=sum(reasons[place] != "disk_full" for place in declared),
        cut=len(cut),
        doubled=num_stored - len(counts),
        wrong=num_wrong + len(set(counts) - may_be),
        forgotten=oracle.num_forgotten(world.oracle),
        redelivered=num_redelivered(world.oracle),
        conflicts=sum(max(0, writer.num_streams - 1) for writer in accepted),
        wrong_ledgers=await _num_wrong_ledgers(world.database_url),
    )


async def _stored(world: World) -> tuple[Counter[int], int]:
    """How often each number is stored, and how many records are not what was logged."""
    connection = await world.connect()
    counts: Counter[int] = Counter()
    num_wrong = 0
    try:
        async with connection.transaction():
            query = "SELECT sum_loss, sum_trace_cov, sum_grad_sq_norm FROM measurement"
            async for row in connection.cursor(query, prefetch=5000):
                number = int(row[0])
                counts[number] += 1
                num_wrong += content.row_of(number) != Row(*row)
            query = "SELECT stream_id, seq, step, array_agg(name ORDER BY name), array_agg(value ORDER BY name)"
            async for row in connection.cursor(f"{query} FROM metric GROUP BY 1, 2, 3", prefetch=5000):
                for number, is_right in _metric_records(row[3], row[4]):
                    counts[number] += 1
                    num_wrong += not is_right
    finally:
        await connection.close()
    return counts, num_wrong


def _metric_records(names: list[str], values: list[float]) -> Iterator[tuple[int, bool]]:
    """The numbers of one stored call, more than one where it is doubled, each with whether its content is right."""
    found = [value for name, value in zip(names, values, strict=True) if name == "number"]
    roots = [value for name, value in zip(names, values, strict=True) if name == "root"]
    for place, number in enumerate(found):
        expected = content.metrics_of(int(number))
        yield int(number), place < len(roots) and roots[place] == expected["root"]


async def _declared(world: World) -> dict[tuple[str, int], str]:
    """Why each record is lost, by stream and number, as declared; to say that one was rejected is not true of any."""
    connection = await world.connect()
    query = "SELECT stream_id, generate_series(from_seq, to_seq) AS seq, reason FROM stream_loss WHERE reason <> $1"
    try:
        rows = await connection.fetch(query, REJECTED)
    finally:
        await connection.close()
    return {(str(row["stream_id"]), row["seq"]): row["reason"] for row in rows}


async def _ended(world: World) -> set[str]:
    """The streams of which the server says that they are whole."""
    connection = await world.connect()
    try:
        rows = await connection.fetch("SELECT id FROM stream WHERE finished_at IS NOT NULL")
    finally:
        await connection.close()
    return {str(row["id"]) for row in rows}


async def _num_wrong_ledgers(database_url: str) -> int:
    engine = create_engine(database_url, pool_size=1)
    try:
        async with session_factory(engine).begin() as session:
            return len((await ledger.audit(session)).wrong)
    finally:
        await engine.dispose()
