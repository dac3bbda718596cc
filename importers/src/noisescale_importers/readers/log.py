"""Text logs of Megatron-LM, torchtitan, nanoGPT, nanochat and modded-nanogpt, and Hugging Face's trainer_state.json."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from noisescale_importers.readers import trainer_state
from noisescale_importers.readers.files import Line, SourceFile, files_of, lines_of
from noisescale_importers.roles import number_of
from noisescale_importers.source import Damage, Row, SourceRun, shown

SUFFIXES = (".log", ".txt", ".out", ".err")
HEAD_LINES = 5_000

Fields = Iterator[tuple[str, str]]
COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,6}))?")
UNIT = re.compile(r"(?:ms|s|m|min|%|GiB|GB|MiB|MB)?(?:\s*\([^()]*\))?")
NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.IGNORECASE)


def _between_bars(text: str) -> Fields:
    for part in text.split("|"):
        name, _, value = part.strip().partition(":")
        yield name.strip(), value.strip()


def _pairs(text: str) -> Fields:
    yield from re.findall(r"([^\s:]+):\s*(\S+)", text)


def _by_commas(text: str) -> Fields:
    for part in re.split(r",\s+", text.strip()):
        name, _, value = part.strip().rpartition(" ")
        yield name.strip(), value


FORMS: tuple[tuple[re.Pattern[str], Callable[[str], Fields], str], ...] = (
    (re.compile(r"\biteration\s+(\d+)\s*/\s*\d+\s*\|(.*)"), _between_bars, ""),  # Megatron-LM
    (re.compile(r"\bvalidation loss at iteration (\d+)[^|]*\|(.*)"), _between_bars, "validation "),
    (re.compile(r"\bvalidate step:\s*(\d+)\s{2,}(\w+:.*)"), _pairs, "validation "),  # torchtitan
    (re.compile(r"\bstep:\s*(\d+)\s{2,}(\w+:.*)"), _pairs, ""),
    (re.compile(r"^iter (\d+): (loss .*)"), _by_commas, ""),  # nanoGPT
    (re.compile(r"^step (\d+): (train loss .*)"), _by_commas, ""),
    (re.compile(r"^step (\d+)(?:/\d+)? \([^()]*\) \| (.*)"), _between_bars, ""),  # nanochat
    (re.compile(r"^Step (\d+) \| (.*)"), _between_bars, ""),
    (re.compile(r"^step:(\d+)/\d+ (.*)"), _pairs, ""),  # modded-nanogpt
)
"""A line of steps begins like one of these; behind it are names and numbers, which may get a word in front."""

LOOKS_LIKE_ONE = re.compile(
    r"(?:iter\w*|step)\W{0,3}\s*\d.*loss|loss\W{0,12}\d[^a-z]*.*(?:norm|tps|rate|tok/|mfu|ppl)", re.IGNORECASE
)
MUST_BE_NUMBERS = re.compile(r"loss|norm|rate|batch|samples|tokens|bpb|ppl", re.IGNORECASE)
"""Fields that may not be left out where they cannot be read; others may hold words."""

SETTING = re.compile(r"^\s+(\w+) \.{3,} (\S+)\s*$")  # Megatron-LM's arguments
SETTINGS = (
    (re.compile(r"^tokens per iteration will be: ([\d,]+)"), "tokens_per_iteration"),
    (re.compile(r"^Total batch size ([\d,]+)"), "total_batch_size"),
)
HAS_ENDED = re.compile(r"\[after training is done\]|Training completed|^Total training time:", re.IGNORECASE)
TRAINING_LOSS = ("lm loss", "loss", "train loss", "train_loss")


class Importer:
    """The plug-in."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of logs: one a file, and one for each folder in which a Trainer saved its state.

        Raises:
            ConfigError: For a source that is not there.
        """
        states: list[SourceFile] = []
        for file in files_of(sources, lambda path: path.suffix in SUFFIXES or path.name == trainer_state.NAME):
            if isinstance(file, Damage):
                yield file
            elif file.path.suffix == ".json":
                states.append(file)
            else:
                yield _run(file)
        yield from trainer_state.runs_of(states)


importer = Importer()


def _run(file: SourceFile) -> SourceRun:
    config: dict[str, object] = {}
    names: set[str] = set()
    has_ended = False
    for number, line in enumerate(lines_of(file.path, keeps_controls=True)):
        if isinstance(line, Line):
            has_ended = has_ended or HAS_ENDED.search(line.text) is not None
            if number < HEAD_LINES:
                config |= _setting(line.text)
                row = _row(line)
                names |= set(row.values) if isinstance(row, Row) else set()
    loss = next((name for name in TRAINING_LOSS if name in names), None)
    return SourceRun(
        identity=file.name,
        root=file.root,
        place=str(file.path),
        rows=lambda: _rows(file.path),
        name=file.path.stem,
        config=config,
        state="finished" if has_ended else "unknown",
        changed_at=file.changed_at,
        roles={} if loss is None else {"loss": loss},
    )


def _rows(path: Path) -> Iterator[Row | Damage]:
    for line in lines_of(path, keeps_controls=True):
        found = line if isinstance(line, Damage) else _row(line)
        if found is not None:
            yield found


def _row(line: Line) -> Row | Damage | None:
    """The numbers of a line of steps; None for any other line."""
    text = COLOURS.sub("", line.text)
    if not line.has_end:
        return Damage(line.place, "has no end: it is cut, or still being written")
    for start, fields, before in FORMS:
        match = start.search(text)
        if match is None:
            continue
        values: dict[str, float] = {}
        for name, value in fields(match[2]):
            number = _number(value)
            if number is not None and name:
                values[f"{before}{name}"] = number
            elif MUST_BE_NUMBERS.search(name) is not None:
                return Damage(line.place, f"{shown(name, 60)} is no number, got {shown(repr(value), 60)}", True)
        return Row(values, int(match[1]), _time(text), line.place) if len(match[1]) < 16 and values else None
    if LOOKS_LIKE_ONE.search(text):
        return Damage(line.place, f"looks like a line of steps and cannot be read: {shown(text.strip(), 80)}", True)
    return None


def _number(text: str) -> float | None:
    """The number at the start of a field whose rest is a unit; None where it is anything else."""
    match = NUMBER.match(text)
    if match is None or UNIT.fullmatch(text[match.end() :].strip()) is None:
        return None
    return number_of(match[0].replace(",", ""))


def _time(text: str) -> float | None:
    """Unix seconds of the line's time stamp, taken as UTC where it names no zone."""
    match = TIME.search(text)
    if match is None:
        return None
    try:
        at = datetime.fromisoformat(f"{match[1]}T{match[2]}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return at.timestamp() + float(f"0.{match[3] or 0}")


def _setting(text: str) -> dict[str, object]:
    match = SETTING.match(text)
    if match is not None:
        number = number_of(match[2])
        return {match[1]: match[2] if number is None else number}
    for pattern, name in SETTINGS:
        match = pattern.match(text)
        number = None if match is None else number_of(match[1].replace(",", ""))
        if number is not None:
            return {name: number}
    return {}
