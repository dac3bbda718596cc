"""The items of a benchmark that may be cut off: what its file holds of this very code is kept, the rest is measured."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import torch

from benchmarks import results_file
from benchmarks.kernels.results_table import Row, results_name, versions

CUT_OFF = "cut off"
"""How `status` or `misses` begins in rows of an item that is not over: it is measured again."""

IS_LEFT = os.EX_TEMPFAIL
"""Exit status where the time was over before all items were measured: the same command goes on."""

T = TypeVar("T")
Key = tuple[str, ...]


class Items:
    """What one file of results consists of: each item is one row or several, and is written once it is measured.

    An item is there if its rows are of this very code and device. Others stay in the file, each with the commit that
    it is of, until theirs are measured again.

    Args:
        what: Name of the results, without the device.
        device: On which they are measured.
        key_of: The item that a row belongs to, by the columns that say what was measured.
        command: What a reader types to measure again.
        seconds: An item that is not begun by then is left.
        is_again: Whether all are measured, also those that are there.
        is_written: False where sizes say nothing: all are measured, nothing is read or written.

    Attributes:
        rows: Of the file as it is; none where nothing is written.
        left: Items for which there was no time.
    """

    def __init__(
        self,
        what: str,
        device: torch.device,
        key_of: Callable[[Row], Key],
        *,
        command: str,
        seconds: float,
        is_again: bool = False,
        is_written: bool = True,
    ) -> None:
        self._name = results_name(what, device)
        self._about = versions(device)
        self._key_of = key_of
        self._command = command
        self._seconds = seconds
        self._is_written = is_written and not results_file.IS_SMOKE
        self._start = time.monotonic()
        self.rows = self._read()
        self._there = set() if is_again else {key_of(row) for row in self.rows if self._counts(row)}
        self.left: list[Key] = []

    def missing(self, things: Iterable[T], key: Callable[[T], Key]) -> list[T]:
        """Those of all things that are not there.

        Args:
            things: All of them, in the order in which they are measured.
            key: The item of a thing, as `key_of` says it of its rows.
        """
        everything = list(things)
        missing = [thing for thing in everything if key(thing) not in self._there]
        if len(missing) < len(everything):
            print(f"{len(everything) - len(missing)} of {len(everything)} measured already", flush=True)
        return missing

    def in_time(self, things: Iterable[T], key: Callable[[T], Key], least_seconds: float = 0) -> Iterator[T]:
        """Those that can be begun in time, one after the other.

        Args:
            things: What is missing.
            key: The item of a thing.
            least_seconds: That must be left.
        """
        for thing in things:
            if self.seconds_left() > least_seconds:
                yield thing
            else:
                self.left.append(key(thing))
                print(f"{', '.join(key(thing))}: no time left", flush=True)

    def seconds_left(self) -> float:
        """Until nothing new is begun."""
        return self._start + self._seconds - time.monotonic()

    def is_known(self, key: Key) -> bool:
        """Whether the file has rows of an item, whatever code they are of."""
        return any(self._key_of(row) == key for row in self.rows)

    def add(self, rows: Sequence[Row], *, is_over: bool = True) -> None:
        """Write the rows of one item in the place of those that the file has of it.

        Args:
            rows: All of one item.
            is_over: False: the item goes on, and these replace only what was written of it in the same way.
        """
        if not self._is_written or not rows:
            return
        key = self._key_of(rows[0])
        kept = [row for row in self.rows if self._key_of(row) != key or not (is_over or is_cut_off(row))]
        results_file.write_rows(self._name, rows, command=self._command, about=self._about, kept=kept)
        self.rows = self._read()

    def end(self) -> None:
        """Say how many are left, and exit with `IS_LEFT` if any are."""
        if self.left:
            print(f"{len(self.left)} left: call again to go on")
            sys.exit(IS_LEFT)

    def _read(self) -> list[Row]:
        if not self._is_written or not (results_file.RESULTS / f"{self._name}.csv").exists():
            return []
        return [dict(row) for row in results_file.read(self._name)]

    def _counts(self, row: Row) -> bool:
        is_of_this = row.get("code") == results_file.fingerprint(self._name)
        return is_of_this and row.get("device") == self._about["device"] and not is_cut_off(row)


def is_cut_off(row: Row) -> bool:
    """Whether a row is of an item that was not over."""
    return any(str(row.get(column, "")).startswith(CUT_OFF) for column in ("status", "misses"))
