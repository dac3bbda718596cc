"""What an importer is: it finds runs in a source and yields their rows; everything else is done once for all of them.

A plug-in is an object with `find`, named by an entry point in the group `noisescale.importers`; the files in `readers/`
are examples.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, NamedTuple, Protocol

from noisescale_core.errors import ConfigError

GROUP = "noisescale.importers"

State = Literal["finished", "failed", "running", "unknown"]
"""How a run stands, as its source says; "unknown": it does not, and how long the files rest decides."""

TrialStatus = Literal["complete", "infeasible", "incomplete"]
"""How a trial of a study ended; "infeasible": it diverged, "incomplete": what is missing may change the result."""


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
