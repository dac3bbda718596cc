"""The trials of a sweep in a small JSON file, so that an interrupted sweep goes on where it was."""

import json
import os
import uuid
from pathlib import Path

from noisescale_core.errors import ConfigError
from noisescale_lab.sweep.question import Question
from noisescale_lab.sweep.trial import Setting, Trial

VERSION = 1


class StateFile:
    """Trials by their setting; written anew after each, and renamed, so that a crash leaves the file before it.

    Attributes:
        sweep_id: UUID of the sweep, the same when it goes on.

    Args:
        path: Of the file; None: nothing is kept beyond the process.
        question: What the sweep asks.

    Raises:
        ConfigError: If the file belongs to another question or is no state file.
    """

    def __init__(self, path: str | os.PathLike[str] | None, question: Question) -> None:
        self.sweep_id = str(uuid.uuid4())
        self._path = None if path is None else Path(path)
        self._question = question.to_json()
        self._trials: dict[Setting, Trial] = {}
        if self._path is not None and self._path.exists():
            self._load(self._path)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials in the order in which they ran."""
        return tuple(self._trials.values())

    def find(self, setting: Setting) -> Trial | None:
        """The finished trial of this setting, or None; one that a budget cut short is not finished."""
        trial = self._trials.get(setting)
        return None if trial is None or trial.status == "incomplete" else trial

    def add(self, trial: Trial) -> None:
        """Keep a trial."""
        self._trials[trial.setting] = trial
        if self._path is None:
            return
        content = {
            "version": VERSION,
            "sweep_id": self.sweep_id,
            "question": self._question,
            "trials": [each.to_json() for each in self._trials.values()],
        }
        beside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        beside.write_text(json.dumps(content))
        beside.replace(self._path)

    def _load(self, path: Path) -> None:
        try:
            content = json.loads(path.read_text())
            version, question, trials = content["version"], content["question"], content["trials"]
            self.sweep_id = str(uuid.UUID(content["sweep_id"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"state_file {path} is not one of a sweep ({error!r}): name another") from error
        if version != VERSION or question != self._question:
            changed = sorted(name for name in self._question if question.get(name) != self._question[name])
            raise ConfigError(
                f"state_file {path} belongs to a sweep with other {', '.join(changed) or 'version'}: name another file"
            )
        for trial in map(Trial.from_json, trials):
            self._trials[trial.setting] = trial
