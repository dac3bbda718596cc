"""Result logs of MLPerf Training: lines of `:::MLLOG` with JSON behind it; a file is a run.

Evaluations say how many samples were seen, or how many epochs; steps follow by the global batch size.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from noisescale_importers.readers.files import Line, SourceFile, files_of, lines_of
from noisescale_importers.roles import number_of, parsed_json
from noisescale_importers.source import Damage, Row, SourceRun, State, shown

MARK = ":::MLLOG"
EVALUATIONS = ("eval_accuracy", "eval_loss", "eval_error", "train_loss")
LOSSES_AS_ACCURACY = ("gpt3", "llama", "stable_diffusion", "flux")
"""Benchmarks that log a falling loss under the key `eval_accuracy`."""

STATES: Mapping[str, State] = {"success": "finished", "aborted": "failed"}
MOST_EPOCHS = 10_000
"""More than that under `epoch_num` are samples, as BERT logs them."""


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of result logs.

        Raises:
            ConfigError: For a source that is not there.
        """
        for file in files_of(sources, lambda path: path.suffix in (".txt", ".log", ".out")):
            yield file if isinstance(file, Damage) else _run(file)


importer = Importer()


def _run(file: SourceFile) -> SourceRun:
    config: dict[str, object] = {}
    state: State = "unknown"
    started_at: float | None = None
    for event in _events(file.path):
        if isinstance(event, Damage):
            continue
        key, value, metadata = event.get("key"), event.get("value"), _metadata(event)
        if key == "run_start":
            started_at = _seconds(event)
        elif key == "run_stop":
            state = STATES.get(str(metadata.get("status")), "unknown")
        elif isinstance(key, str) and key not in EVALUATIONS and isinstance(value, str | int | float):
            config.setdefault(key, value)
    benchmark = str(config.get("submission_benchmark", "mlperf"))
    falls = any(name in benchmark for name in LOSSES_AS_ACCURACY)
    return SourceRun(
        identity=file.name,
        root=file.root,
        place=str(file.path),
        rows=lambda: _rows(file.path, "eval_loss" if falls else "eval_accuracy"),
        name=f"{benchmark} {file.path.stem}",
        config=config,
        group=benchmark,
        state=state,
        changed_at=file.changed_at,
        started_at=started_at,
        roles={"metric": "eval_loss" if falls else "eval_accuracy"},
        has_single_values=True,
    )


def _rows(path: Path, evaluated: str) -> Iterator[Row | Damage]:
    known: dict[str, float] = {}
    for event in _events(path):
        if isinstance(event, Damage):
            yield event
            continue
        key, place = event.get("key"), str(event["place"])
        number = number_of(event.get("value"))
        if key in ("global_batch_size", "train_samples") and number is not None:
            known.setdefault(str(key), number)
        if key not in EVALUATIONS:
            continue
        step = _step(_metadata(event), known)
        if number is None or step is None:
            got = shown(repr(event.get("value")), 40)
            yield Damage(place, f"{key} {got} has no number, or nothing says at which step it was", is_a_row=True)
        else:
            name = evaluated if key == "eval_accuracy" else str(key)
            yield Row({name: number}, step, _seconds(event), place)


def _step(metadata: Mapping[str, object], known: Mapping[str, float]) -> int | None:
    """The step, counted from 0, by the samples that were seen."""
    samples = number_of(metadata.get("samples_count"))
    epochs = number_of(metadata.get("epoch_num"))
    if samples is None and epochs is not None:
        samples = epochs if epochs > MOST_EPOCHS else epochs * known.get("train_samples", float("nan"))
    batch = known.get("global_batch_size")
    if samples is not None and batch is not None and batch > 0 and 0 <= samples < 2**53:
        return max(0, round(samples / batch) - 1)
    step = number_of(metadata.get("step_num"))
    return int(step) if step is not None and 0 <= step < 2**53 else None


def _events(path: Path) -> Iterator[dict[str, object] | Damage]:
    for line in lines_of(path, keeps_controls=True):
        if isinstance(line, Damage):
            yield line
        elif not line.has_end:
            yield Damage(line.place, "has no end: it is cut, or still being written")
        elif MARK in line.text:
            yield _event(line)


def _event(line: Line) -> dict[str, object] | Damage:
    try:
        found = parsed_json(line.text.partition(MARK)[2])
    except (ValueError, RecursionError):
        return Damage(line.place, f"has no JSON behind {MARK}", is_a_row=True)
    if not isinstance(found, dict):
        return Damage(line.place, f"has no object behind {MARK}", is_a_row=True)
    return {**found, "place": line.place}


def _metadata(event: Mapping[str, object]) -> Mapping[str, object]:
    found = event.get("metadata")
    return found if isinstance(found, dict) else {}


def _seconds(event: Mapping[str, object]) -> float | None:
    """Unix seconds; a submitter's placeholder of 0 is none."""
    milliseconds = number_of(event.get("time_ms"))
    return milliseconds / 1000 if milliseconds is not None and 0 < milliseconds < 2.5e14 else None
