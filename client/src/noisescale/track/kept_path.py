"""What a run knows of its path, kept on disk for the job that goes on with the run from a checkpoint.

A file for each rank, `<state>/paths/<run>-<rank>.json`: the sketch of θ_0, and the sums as they stood at some steps,
since a resumed job makes the steps after its checkpoint once more. A run whose id nobody has given is not resumed, and
has no file.
"""

import contextlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath

from noisescale.config import Config
from noisescale_core.estimators.path import NUMBERS, Path

GROWTH = 1.125
"""Of the updates from one kept moment to the next."""


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
            moments = [(int(step), Path(*path)) for step, path in found["moments"]]
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
