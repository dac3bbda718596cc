"""`trainer_state.json`, in which the Hugging Face Trainer saves what it has logged; part of the importer `log`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from noisescale_importers.readers.files import SourceFile
from noisescale_importers.roles import number_of, parsed_json
from noisescale_importers.source import Damage, Row, SourceRun, shown

NAME = "trainer_state.json"
MAX_BYTES = 1 << 28


def runs_of(files: Sequence[SourceFile]) -> Iterator[SourceRun | Damage]:
    """One run for each folder of checkpoints: the newest of its states holds what the others hold."""
    newest: dict[Path, tuple[int, SourceFile, dict[str, Any]]] = {}
    for file in files:
        state = _read(file.path)
        if isinstance(state, Damage):
            yield state
            continue
        folder = file.path.parent
        folder = folder.parent if folder.name.startswith("checkpoint-") else folder
        step = state.get("global_step")
        step = step if isinstance(step, int) else 0
        if folder not in newest or newest[folder][0] < step:
            newest[folder] = (step, file, state)
    for folder, (step, file, state) in newest.items():
        yield _run(folder, step, file, state)


def _run(folder: Path, step: int, file: SourceFile, state: dict[str, Any]) -> SourceRun:
    last, history = state.get("max_steps"), state["log_history"]
    config = {
        # of one process and one backward, without accumulation: not the batch of a step
        "per_device_train_batch_size": state.get("train_batch_size"),
        **{name: state.get(name) for name in ("max_steps", "num_train_epochs", "logging_steps", "eval_steps")},
    }
    return SourceRun(
        identity="trainer state",
        root=str(folder),
        place=str(file.path),
        rows=lambda: (_row(entry, number) for number, entry in enumerate(history)),
        name=folder.name,
        config={name: value for name, value in config.items() if value is not None},
        state="finished" if isinstance(last, int) and 0 < last <= step else "unknown",
        changed_at=file.changed_at,
        roles={"loss": "loss", "metric": "eval_loss"},
    )


def _read(path: Path) -> dict[str, Any] | Damage:
    place = str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            return Damage(place, f"has more than {MAX_BYTES} bytes")
        state = parsed_json(path.read_bytes())
    except OSError as error:
        return Damage(place, f"cannot be read: {error.strerror}")
    except (ValueError, RecursionError) as error:
        return Damage(place, f"is no JSON, cut or damaged: {shown(error)}")
    if not isinstance(state, dict) or not isinstance(state.get("log_history"), list):
        return Damage(place, "is no state of a Trainer: it has no log_history")
    return state


def _row(entry: object, number: int) -> Row | Damage:
    place = f"entry {number} of log_history"
    if not isinstance(entry, dict):
        return Damage(place, f"is no object, got {type(entry).__name__}", is_a_row=True)
    step = entry.get("step")
    if not isinstance(step, int) or isinstance(step, bool):
        return Damage(place, f"has no step, got {shown(repr(step), 60)}", is_a_row=True)
    values = {}
    for name, value in entry.items():
        found = None if isinstance(value, str) else number_of(value)
        if found is None and (name == "loss" or name.endswith(("_loss", "_norm", "_rate"))):
            return Damage(place, f"{shown(name)} is no number, got {shown(repr(value), 60)}", is_a_row=True)
        if found is not None and name != "step":
            values[name] = found
    return Row(values, step, None, place)
