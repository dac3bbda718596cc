"""From an importer's runs to the server: prepared, shown, sent one after the other, and accounted for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from noisescale_importers.answers.summary import Summary
from noisescale_importers.delivery.assembly import Assembly
from noisescale_importers.delivery.connection import Connection
from noisescale_importers.delivery.delivery import Delivery
from noisescale_importers.prepared import (
    Prepared,
    Wishes,
    description_of,
    head_of,
    missing_columns,
    prepare,
    run_id_of,
    status_of,
    summary_of,
)
from noisescale_importers.source import Damage, Importer, shown


@dataclass
class Account:
    """What became of a source.

    Attributes:
        num_runs: Runs of which the server has everything.
        num_new: Records that are new there.
        num_known: Records that were there.
        num_repeated: Rows left out since they repeat the step before.
        faults: What could not be read, was refused, or is not there: the place and a sentence.
        waiting: Runs whose last step waits for the source to go on.
        summaries: Of the runs that are there.
        prices: By run, USD of a device and hour, where it is known.
    """

    num_runs: int = 0
    num_new: int = 0
    num_known: int = 0
    num_repeated: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)
    waiting: int = 0
    summaries: list[Summary] = field(default_factory=list)
    prices: dict[str, float] = field(default_factory=dict)


@dataclass
class Found:
    """The runs of a source with what cannot be read of it."""

    runs: list[Prepared] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)


def look(importer: Importer, sources: Sequence[str], options: dict[str, str], wishes: Wishes) -> Found:
    """Find the runs and choose their roles.

    Raises:
        ConfigError: For a source or flag that makes no sense.
    """
    found, heads = Found(), []
    for one in importer.find(sources, options):
        if isinstance(one, Damage):
            found.damages.append(one)
        else:
            heads.append(head_of(one))
    # a run that stopped before its first evaluation has no column of it, and the others come all the same
    elsewhere = {name for head in heads for name in head.examples} | missing_columns(heads, wishes)
    found.runs += [prepare(head, wishes, elsewhere) for head in heads]
    return found


def send(
    found: Found,
    wishes: Wishes,
    connection: Connection,
    *,
    on_progress: Callable[[int], None] = lambda number: None,
    on_run: Callable[[], None] = lambda: None,
) -> Account:
    """Send every run that has rows.

    Raises:
        TransportError: Without a server.
        ConfigError: Where the key may not, or for a project that the server would refuse.
    """
    account = Account(faults=[("", _said(one)) for one in found.damages])
    for one in found.runs:
        if one.has_rows:
            _send_run(one, wishes, connection, account, on_progress)
        else:
            place = shown(one.source.place)
            account.faults += [(place, _said(damage)) for damage in one.damages]
            account.faults.append((place, "no rows: left out"))
        on_run()
    return account


def _send_run(
    one: Prepared, wishes: Wishes, connection: Connection, account: Account, on_progress: Callable[[int], None]
) -> None:
    run, summary = one.source, summary_of(one, wishes)
    status = status_of(run, wishes)
    assembly = Assembly(one.reading(), has_single_values=run.has_single_values, is_over=status is not None)
    delivery = Delivery(
        connection,
        run_id_of(run, wishes),
        description_of(one, wishes),
        started_at=run.started_at,
        on_progress=on_progress,
    )
    outcome = delivery.send(summary.watch(assembly.items(run.rows())), lambda: status)
    place = shown(run.place)
    account.num_new += outcome.num_new
    account.num_known += outcome.num_known
    account.num_repeated += assembly.num_repeated
    account.waiting += assembly.is_waiting
    account.faults += [(place, _said(damage)) for damage in outcome.damages]
    account.faults += [(place, text) for text in outcome.refused]
    if outcome.problem is not None:
        account.faults.append((place, f"not imported: {outcome.problem}"))
        return
    account.num_runs += 1
    account.summaries.append(summary.settled())
    price = one.number("price")
    if price is not None:
        account.prices[summary.run_id] = price


def _said(damage: Damage) -> str:
    where = f"{shown(damage.place)}: " if damage.place else ""
    lost = ": left out, the rest is imported" if damage.is_a_row else ""
    return f"{where}{shown(damage.reason, 300)}{lost}"


def sentences(account: Account, most_faults: int = 8) -> Iterator[str]:
    """What became of the source, for people: each damaged place is named, with its first faults."""
    of_place: dict[str, list[str]] = {}
    for place, text in account.faults:
        of_place.setdefault(place, []).append(text)
    for place, texts in of_place.items():
        before = f"{place}, " if place else ""
        yield from (f"{before}{text}" for text in texts[:most_faults])
        if len(texts) > most_faults:
            yield f"{before}and {len(texts) - most_faults:,} more"
    yield (
        f"{account.num_runs} {'run' if account.num_runs == 1 else 'runs'}: {account.num_new:,} new records, "
        f"{account.num_known:,} there already"
    )
    if account.num_repeated:
        yield f"{account.num_repeated:,} rows repeat the step before them and were left out"
    if account.waiting:
        yield (
            f"the last step of {account.waiting} runs waits, as their files were written a moment ago: "
            "import again later, or with --finished"
        )
