"""The path of the parameters as a run knows it: sums over the looks at its updates, and how far they have led."""

import contextlib
import json
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from noisescale.config import Config
from noisescale.rows.row_parts import PathPart
from noisescale.rows.updates import MAX_TERM
from noisescale.track.promise_log import PromiseLog
from noisescale_core.estimators.path import NUMBERS, Path, Promised, at_half, push_since

if TYPE_CHECKING:
    from noisescale.capture.path.update_path import Look, UpdatePath

GROWTH = 1.125
"""Of the updates from one kept moment to the next."""

SLACK = 4.0
"""Times the longer update at both ends: what lies between two looks may be longer, but hardly all of it."""

ROUNDING = 1e-5
"""Share of the parameters by which two sketches of the same ones may differ."""

DISK_SECONDS = 1.0
"""Longest wait at the end of a watch for the file of the path."""

NOTHING = Path(0, 0.0, 0.0, 0.0)


# What a run knows of its path, kept on disk for the job that goes on with the run from a checkpoint.
#
# A file for each rank, `<state>/paths/<run>-<rank>.json`: the sketch of θ_0, and the sums as they stood at some steps,
# since a resumed job makes the steps after its checkpoint once more. A run whose id nobody has given is not resumed,
# and has no file.


@dataclass(slots=True)
class Kept:
    """What is kept.

    Attributes:
        layout: Of which parameters the sketch is.
        sketch: Of θ_0.
        start: Number of the step whose update was the first.
        moments: (step that comes next, path so far), oldest first.
    """

    layout: str
    sketch: list[list[float]]
    start: int
    moments: list[tuple[int, Path]] = field(default_factory=list)

    def before(self, step: int) -> Path | None:
        """The path as it stood when this step was to come; None where nothing is known of a time before it.

        The updates since the last moment that was kept count as those before it, on average.

        Args:
            step: Number of a step.
        """
        for next_step, path in reversed(self.moments):
            if next_step <= step and path.num_updates > 0:
                longer = (path.num_updates + step - next_step) / path.num_updates
                return path._replace(
                    num_updates=path.num_updates * longer,
                    sum_sq_norm=path.sum_sq_norm * longer,
                    variance=path.variance * longer * longer,
                    promised=None if path.promised is None else path.promised.times(longer),
                )
        return None


class PathKeeper:
    """Reads and writes the file of one run; what the disk refuses is left out.

    Args:
        folders: For records that wait, the best first.
        run_id: UUID of the run.
        rank: Of this process.
    """

    def __init__(self, folders: Sequence[FilePath], run_id: str, rank: int) -> None:
        self._file = folders[0] / "paths" / f"{run_id}-{rank}.json"
        self._writing: threading.Thread | None = None

    def read(self) -> Kept | None:
        """What an earlier process has kept."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            found = json.loads(self._file.read_text())
            promised = found.get("promised") or [None] * len(found["moments"])
            moments = [
                (int(step), Path(*path)._replace(promised=None if of_it is None else Promised(*of_it)))
                for (step, path), of_it in zip(found["moments"], promised, strict=True)
            ]
            return Kept(str(found["layout"]), found["sketch"], int(found["start"]), moments)
        return None

    def keep(self, kept: Kept) -> None:
        """Write it, in a thread of its own: a disk may take seconds. Nothing where the last write has not ended."""
        if self._writing is not None and self._writing.is_alive():
            return
        content = {
            "layout": kept.layout,
            "sketch": kept.sketch,
            "start": kept.start,
            # the push follows from two moments
            "moments": [[step, list(path[:NUMBERS])] for step, path in kept.moments],
            "promised": [None if path.promised is None else list(path.promised) for _, path in kept.moments],
        }
        self._writing = threading.Thread(target=self._write, args=(content,), daemon=True)
        self._writing.start()

    def wait(self, seconds: float) -> None:
        """Wait for the last write, at most so long."""
        if self._writing is not None:
            self._writing.join(seconds)

    def _write(self, content: dict[str, object]) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = self._file.with_suffix(f".{os.getpid()}")
            new.write_text(json.dumps(content))
            os.replace(new, self._file)


def keeper_of(config: Config, run_id: str) -> PathKeeper | None:
    """Of a run that may be gone on with by its id, and on a disk; None of another.

    Args:
        config: Settings of the client.
        run_id: UUID of the run.
    """
    is_resumable = config.run_id == run_id and config.mode != "disabled" and config.folders
    return PathKeeper(config.folders, run_id, config.rank) if is_resumable else None


class PathLog:
    """Adds the looks up.

    The updates between two looks count as the mean of both, which has no bias where |u|² is a line in between, however
    much it scatters about it. That scatter, as both looks show it, gives the variance of the sum.

    Args:
        keeper: Keeps the path for a job that goes on with the run; None where nothing is kept.

    Attributes:
        start: Number of the step whose update was the first since θ_0.
        parts: What is new, by the number of its step; `take` takes it.
        promise: What the updates have promised.
    """

    def __init__(self, keeper: PathKeeper | None = None) -> None:
        self.start = 0
        self._keeper = keeper
        self._total = NOTHING
        self._moments: list[Path] = []  # of which the push takes the one at half of the updates
        self.parts: deque[tuple[int, PathPart]] = deque()
        self.promise = PromiseLog()
        self._last: Look | None = None
        self._generation = 1
        self._kept: Kept | None = None
        self._has_begun = False

    @property
    def path(self) -> Path | None:
        """Since θ_0; None before the first look, and while no distance is known."""
        total = self._total._replace(promised=self._promised())
        if not total.sq_distance > 0:
            return None
        half = at_half(self._moments, total)
        return total if half is None else total._replace(push=push_since(half, total))

    def begin(self, path: "UpdatePath | None", step: int) -> None:
        """Go on from what an earlier process of the run has seen, where this one goes on with the run.

        To be called when a step is logged, which is before the first update.

        Args:
            path: Where the looks come from.
            step: Number of the step.
        """
        if self._has_begun or path is None:
            return
        self._has_begun = True
        kept = None if self._keeper is None or step == 0 else self._keeper.read()
        total = None if kept is None else kept.before(step)
        if kept is not None and total is not None and path.go_on_from(kept.layout, kept.sketch):
            kept.moments = [moment for moment in kept.moments if moment[0] <= step]
            self._kept, self._total, self.start = kept, total, kept.start
            self._moments = [moment for _, moment in kept.moments]
            if total.promised is not None:
                self.promise.go_on_from(total.promised)

    def collect(self, path: "UpdatePath | None", number_of: Callable[[int], int], *, is_last: bool = False) -> None:
        """Take the looks that have arrived.

        Args:
            path: Where they come from; None where nothing is measured.
            number_of: From the number of an update to that of its step.
            is_last: All of them; waits for the device.
        """
        if path is None:
            return
        for look in path.drain() if is_last else path.arrived():
            self._add(look, path, number_of)
            self._keep(path, number_of)
        if path.promise is not None:
            self.promise.add(path.promise.drain() if is_last else path.promise.arrived())
            for step, promised in self.promise.settle(number_of, is_last=is_last):
                self.parts.append((step, PathPart.of_promise(promised)))
        if is_last and self._last is not None:
            self._keep(path, number_of, is_last=True)

    def take(self, step: int) -> PathPart | None:
        """What is new since the last call, of the updates before a step: its row may be recorded later.

        Args:
            step: Number of the row's step.
        """
        found: PathPart | None = None
        while self.parts and self.parts[0][0] < step:
            part = self.parts.popleft()[1]
            found = part if found is None else found.then(part)
        return found

    def forget(self) -> None:
        """Another model is trained from here on."""
        self._total, self._last, self._generation = NOTHING, None, 1
        self._moments = []
        self._kept, self._has_begun = None, False
        self.promise = PromiseLog()
        self.parts.clear()

    def _add(self, look: "Look", path: "UpdatePath", number_of: Callable[[int], int]) -> None:
        if not all(one < MAX_TERM for one in (look.sq_norm, look.sq_distance, look.moved_sq)):
            return  # diverged, or not a number
        last, self._last = self._last, look
        if last is not None and (look.generation > self._generation or has_jumped(last, look)):
            self._begin_again(look, path, number_of)
            return
        if last is None and not self._total.num_updates:
            self.start = number_of(0)
        self._generation = max(self._generation, look.generation)
        self._extend(look, last, number_of)

    def _begin_again(self, look: "Look", path: "UpdatePath", number_of: Callable[[int], int]) -> None:
        """The parameters were changed by something else: θ_0 is where they were before this update."""
        if look.generation <= self._generation:
            self._generation = path.begin_again(look.sketch_before)
        else:
            self._generation = look.generation
        self._total, self._kept, self.start = NOTHING, None, number_of(look.number)
        self.promise.begin_again(look.number)
        # a promise by itself does not say which path it is of
        self.parts = deque((number, part) for number, part in self.parts if part.num_updates)
        self._moments = []
        self._extend(look, None, number_of)

    def _extend(self, look: "Look", last: "Look | None", number_of: Callable[[int], int]) -> None:
        sq_distance = look.sq_distance if look.generation == self._generation else None
        between = 0 if last is None else look.number - last.number - 1
        mean = look.sq_norm if last is None else (look.sq_norm + last.sq_norm) / 2
        scatter = 0.0 if last is None else (look.sq_norm - last.sq_norm) ** 2 / 2
        num_updates, sum_sq_norm = between + 1, look.sq_norm + between * mean
        # those in between scatter by themselves, and each of them has the error of the mean of both looks
        variance = between * (between + 1) * scatter
        part = PathPart(num_updates, sum_sq_norm, variance, sq_distance, self.start, look.momentum)
        total = self._total
        self.parts.append((number_of(look.number), part))
        self._total = Path(
            total.num_updates + num_updates,
            total.sum_sq_norm + sum_sq_norm,
            total.variance + variance,
            total.sq_distance if sq_distance is None else sq_distance,
            look.momentum,
        )
        if sq_distance is not None:
            self._remember_moment()

    def _remember_moment(self) -> None:
        """Moments that are further and further apart, back to half of the updates."""
        moments, now = self._moments, self._total._replace(promised=self._promised())
        if moments and now.num_updates < GROWTH * moments[-1].num_updates:
            return
        moments.append(now)
        while len(moments) > 1 and moments[1].num_updates <= now.num_updates / 2:
            del moments[0]  # the one before half stays

    def _promised(self) -> Promised | None:
        return self.promise.total if self.promise.total.num_updates else None

    def _keep(self, path: "UpdatePath", number_of: Callable[[int], int], *, is_last: bool = False) -> None:
        """Keep the path as it is now, at moments that are further and further apart, and at the end."""
        keeper, total, look = self._keeper, self._total, self._last
        if keeper is None or look is None or not total.sq_distance > 0:
            return
        if self._kept is None:
            start = path.start()
            assert start is not None
            self._kept = Kept(*start, self.start)
        moments = self._kept.moments
        if moments and total.num_updates < GROWTH * moments[-1][1].num_updates and not is_last:
            return
        moments.append((number_of(look.number) + 1, total._replace(promised=self._promised())))
        if is_last:
            keeper.wait(DISK_SECONDS)
        keeper.keep(self._kept)
        if is_last:
            keeper.wait(DISK_SECONDS)


def has_jumped(last: "Look", look: "Look") -> bool:
    """Whether the parameters went farther between two looks than the updates there can have led them.

    Args:
        last: The look before.
        look: At a later update.
    """
    between = look.number - last.number - 1
    longest = math.sqrt(max(last.sq_norm, look.sq_norm))
    size = math.sqrt(max(last.sq_size, look.sq_size))
    reach = SLACK * between * (longest + look.decay * size) + ROUNDING * size
    return look.moved_sq > reach * reach
