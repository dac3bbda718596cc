"""What an importer is: it finds runs in a source and yields their rows; everything else is done once for all of them.

A plug-in is an object with `find`, named by an entry point in the group `noisescale.importers`; the files in `readers/`
are examples.
"""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, NamedTuple, Protocol

from noisescale_core.errors import ConfigError

MAX_NAME = 256

GROUP = "noisescale.importers"

State = Literal["finished", "failed", "running", "unknown"]
"""How a run stands, as its source says; "unknown": it does not, and how long the files rest decides."""

TrialStatus = Literal["complete", "infeasible", "incomplete"]
"""How a trial of a study ended; "infeasible": it diverged, "incomplete": what is missing may change the result."""

NAMESPACE = uuid.UUID("0f1d6d2e-9c1b-5b70-9a3e-6d5f3e0c7a11")
"""Of all imported runs; another one would import every source a second time."""


# Names of files, columns and runs as a terminal and the server can take them: sources may hold anything.


def shown(text: object, longest: int = 120) -> str:
    """The text with every character that is not printable as U+FFFD, and its middle left out where it is long."""
    clean = "".join(c if c.isprintable() else "\ufffd" for c in str(text))
    if len(clean) <= longest:
        return clean
    half = (longest - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def is_name(text: str) -> bool:
    """Whether the server takes it for the name of a metric, a run or a task."""
    return bool(text.strip()) and len(text) <= MAX_NAME and text.isprintable()


def as_name(text: str) -> str | None:
    """The text as a name that the server takes; None where nothing is left of it."""
    name = shown(text.strip(), MAX_NAME)
    return name if is_name(name) else None


class Row(NamedTuple):
    """Values that a run logged together.

    Attributes:
        values: Numbers by the source's own names; not finite where the run diverged.
        step: As the source counts; None: in one of the columns, or the row's place.
        time: Unix seconds; None: the source does not say.
        place: Where it stands, for messages: "line 12".
    """

    values: Mapping[str, float]
    step: int | None
    time: float | None
    place: str


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a source that cannot be read.

    Attributes:
        place: Where: file and line, or byte.
        reason: What is wrong, in words.
        is_a_row: Whether it stands in the place of one row, which is then declared lost; else it is only said.
    """

    place: str
    reason: str
    is_a_row: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRun:
    """One run of a source; reading its rows twice gives the same rows, and more where it has grown.

    Attributes:
        identity: What tells it from other runs below its root: the same at each import.
        place: File or address, for messages.
        rows: Reads the rows from the first to the last.
        root: Absolute folder that the identity is below; "" where the identity says it all, as a tracker's own id does.
        name: For people.
        config: Settings and facts; roles are looked for here, too.
        group: What was trained, where the source tells several apart: runs of one group make one sweep.
        state: Whether it has ended.
        changed_at: Unix seconds of the source's last change; None: not known.
        started_at: Unix seconds; None: not known.
        has_single_values: Rows hold one value each, as trackers log them: a step's values are put together.
        trial_status: How it ended as a trial of a study.
        targets: Of the metric, where the source names some.
        is_one_row: Its one row says how it ended, and not what was logged at a step.
        units: Units per example, where the source knows them: tokens of a sequence.
        roles: Roles that the source itself knows, by name of the column; flags go before them.
    """

    identity: str
    place: str
    rows: Callable[[], Iterator[Row | Damage]]
    root: str = ""
    name: str | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    group: str | None = None
    state: State = "unknown"
    changed_at: float | None = None
    started_at: float | None = None
    has_single_values: bool = False
    trial_status: TrialStatus = "complete"
    targets: Sequence[float] = ()
    is_one_row: bool = False
    units: float | None = None
    roles: Mapping[str, str] = field(default_factory=dict)


class Importer(Protocol):
    """Finds the runs of one kind of source."""

    def find(self, sources: Sequence[str], options: Mapping[str, str]) -> Iterator[SourceRun | Damage]:
        """The runs of these sources, in an order that stays.

        Args:
            sources: Files, folders or addresses, as given.
            options: Further settings of the command line, by name; unknown ones are left alone.

        Raises:
            ConfigError: For a source that is not there, or a reader that is not installed, with the way out.
        """


def importer_names() -> list[str]:
    """Names of all importers that are installed."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load(name: str) -> Importer:
    """The importer of this name.

    Raises:
        ConfigError: Where there is none, or it cannot be loaded.
    """
    for point in entry_points(group=GROUP):
        if point.name == name:
            try:
                found: Importer = point.load()
            except ModuleNotFoundError as error:
                raise ConfigError(_missing(point, error)) from error
            except (ImportError, AttributeError, SyntaxError) as error:
                raise ConfigError(f"the importer {name!r} ({point.value}) cannot be loaded: {error}") from error
            return found
    raise ConfigError(f"no importer is called {name!r}: there are {', '.join(importer_names())}")


def _missing(point: EntryPoint, error: ModuleNotFoundError) -> str:
    """How to get what an importer reads with: the extra that its entry point names."""
    way = f"in a checkout of noisescale, pip install './importers[{','.join(point.extras)}]'" if point.extras else ""
    return f"the importer {point.name!r} needs {error.name}, which is not installed: {way or 'install it'}"


# Ids of runs and streams that follow from the source: who imports it again finds what is there.


def run_id(run: SourceRun, *, kind: str, project: str, source_name: str | None) -> str:
    """The id of an imported run in a project.

    Args:
        run: The run.
        kind: Name of the importer.
        project: Where it goes.
        source_name: Stands for the folder that the source lies in; None: that folder itself.
    """
    where = run.root if source_name is None else f"named {source_name}"
    return str(uuid.uuid5(NAMESPACE, json.dumps([project, kind, where, run.identity])))


def stream_id(of_run: str, part: int) -> str:
    """The id of a part of a run: part 0 is the run until it ends or goes back to an earlier step, and so on."""
    return str(uuid.uuid5(uuid.UUID(of_run), f"part {part}"))


def sweep_id(project: str, task: str, metric: str | None) -> str:
    """The id of the sweep that imported runs of a task make, by the metric that targets are of."""
    return str(uuid.uuid5(NAMESPACE, json.dumps(["sweep", project, task, metric])))
