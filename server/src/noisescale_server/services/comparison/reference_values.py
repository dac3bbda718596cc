"""Published values to compare one's own with.

They are package data and not a table: each release ships exactly the values that were reviewed with it, a correction
is a diff with its source, and no migration has to repeat them. All of them fit into 100 KiB of memory.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

SHARED_FIELDS = frozenset({"task", "quantity", "value", "unit", "source", "source_address", "evidence", "note", "kind"})


@dataclass(frozen=True, slots=True)
class ReferenceValue:
    """One published value.

    Attributes:
        task: What was trained.
        quantity: What the value is, such as `critical_batch_size_average`.
        value: As `kind` says: a number, [low, high], a record, text, or None.
        unit: Unit of the value.
        source: Where it was published.
        source_address: Its address, or how it was computed.
        evidence: How strong: primary text, transcriptions, recomputed.
        note: A caveat.
        kind: number, range, record, text or none.
        details: Conditions of this value alone, such as the loss it holds at.
    """

    task: str
    quantity: str
    value: Any
    unit: str
    source: str
    source_address: str
    evidence: str
    note: str | None
    kind: str
    details: dict[str, Any]


def load() -> tuple[ReferenceValue, ...]:
    """Every value that ships with this release, in the order of its sources."""
    text = files("noisescale_server").joinpath("data", "reference_values.json").read_text(encoding="utf-8")
    return tuple(_from_row(row) for row in json.loads(text)["values"])


def find(
    values: Iterable[ReferenceValue], *, task: str | None = None, quantity: str | None = None
) -> list[ReferenceValue]:
    """Those of one task, of one quantity, or of both; names are compared without regard to case."""
    return [item for item in values if _is_same(task, item.task) and _is_same(quantity, item.quantity)]


def _is_same(wanted: str | None, name: str) -> bool:
    return wanted is None or wanted.casefold() == name.casefold()


def _from_row(row: dict[str, Any]) -> ReferenceValue:
    shared: dict[str, Any] = {name: row.get(name) for name in SHARED_FIELDS}
    details = {name: value for name, value in row.items() if name not in SHARED_FIELDS}
    return ReferenceValue(**shared, details=details)
