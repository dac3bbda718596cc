"""Files of a source: found below folders, in an order that stays, each with a name that stays."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from noisescale_core.errors import ConfigError
from noisescale_importers.source import Damage
from noisescale_importers.text import shown


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source.

    Attributes:
        path: Where it is.
        root: Absolute folder that its name is below.
        name: Below that folder, with slashes.
    """

    path: Path
    root: str
    name: str

    @property
    def changed_at(self) -> float | None:
        """Unix seconds of its last change; None where it is gone."""
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None


def files_of(sources: Sequence[str], is_wanted: Callable[[Path], bool]) -> Iterator[SourceFile | Damage]:
    """Files that are named, whatever they are called, and those below folders that are wanted, by name.

    Raises:
        ConfigError: For a source that is not there.
    """
    seen: set[Path] = set()
    for source in sources:
        path = Path(os.path.abspath(source))
        if not path.exists():
            raise ConfigError(f"no file or folder {shown(source)}: give one that is there")
        found = _below(path, is_wanted) if path.is_dir() else iter([path])
        for file in found:
            if isinstance(file, Damage):
                yield file
            elif file.exists() and not file.is_file():
                yield Damage(shown(file), "is no regular file, which alone can be read twice: write it to one")
            elif file not in seen:
                seen.add(file)
                yield SourceFile(file, _text(file.parent), _text(file.name))


def _text(path: Path | str) -> str:
    """The path as text that any encoding takes: bytes that are none become what Python escapes them to."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _below(folder: Path, is_wanted: Callable[[Path], bool]) -> Iterator[Path | Damage]:
    faults: list[OSError] = []
    for root, folders, names in os.walk(folder, onerror=faults.append):
        folders.sort()
        for name in sorted(names):
            if is_wanted(Path(root, name)):
                yield Path(root, name)
    for fault in faults:
        yield Damage(shown(fault.filename), f"cannot be read: {fault.strerror}")
