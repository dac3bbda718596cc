"""What was accepted beside what is stored: each record once, with what was logged, or declared lost."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from noisescale_server.services import ledger
from noisescale_server.storage.engine import create_engine, session_factory
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
        declared: Accepted, not stored, and declared lost with a reason.
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
    doubled: int
    wrong: int
    forgotten: int
    redelivered: int
    conflicts: int
    wrong_ledgers: int

    @property
    def is_good(self) -> bool:
        """Nothing lost, doubled, changed or forgotten."""
        return not any((self.lost, self.doubled, self.wrong, self.forgotten, self.conflicts, self.wrong_ledgers))


def judge(world: World) -> Verdict:
    """What the database holds against what the oracle knows."""
    return asyncio.run(_judge(world))


async def _judge(world: World) -> Verdict:
    accepted = list(oracle.read_all(world.oracle))
    numbers = {writer.writer * content.PER_WRITER + index for writer in accepted for index in writer.indices}
    counts, num_wrong = await _stored(world)
    may_be = numbers | {writer.writer * content.PER_WRITER + len(writer.indices) for writer in accepted}
    missing = numbers - set(counts)
    num_declared = await _num_declared(world)
    num_stored = sum(counts.values())
    return Verdict(
        accepted=len(numbers),
        stored=num_stored,
        lost=max(0, len(missing) - num_declared),
        declared=min(len(missing), num_declared),
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


async def _num_declared(world: World) -> int:
    connection = await world.connect()
    try:
        return int(await connection.fetchval("SELECT coalesce(sum(to_seq - from_seq + 1), 0) FROM stream_loss"))
    finally:
        await connection.close()


async def _num_wrong_ledgers(database_url: str) -> int:
    engine = create_engine(database_url, pool_size=1)
    try:
        async with session_factory(engine).begin() as session:
            return len((await ledger.audit(session)).wrong)
    finally:
        await engine.dispose()
