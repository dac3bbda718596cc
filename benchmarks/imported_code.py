"""What a file imports of this repository, and what that imports in turn: scripts, tests' support and packages alike."""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
FOLDERS = (
    BENCHMARKS,
    ROOT,
    *(ROOT / name / "src" for name in ("client", "lab", "importers", "server", "dashboard")),
    *sorted((ROOT / "tests").glob("**/support")),
    ROOT / "tests",
)
"""Where a module may lie, in the order in which benchmarks look."""

DOORS = frozenset(
    ROOT / path
    for path in (
        "client/src/noisescale/__init__.py",
        "server/src/noisescale_server/app.py",
        "dashboard/src/noisescale_dashboard/app.py",
    )
)
"""They lead to everything: they count themselves, what stands behind them counts where a benchmark goes there."""


def imported(starts: Iterable[Path], *, left_out: Iterable[Path] = (), at_import: bool = False) -> frozenset[Path]:
    """These files and all of ours that they stand on.

    Args:
        starts: Files.
        left_out: Files and folders that are neither counted nor followed.
        at_import: Only what importing loads: doors are followed, names for type checkers are not.
    """
    beyond = tuple(left_out)
    found: set[Path] = set()
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        if path in found or any(path.is_relative_to(one) for one in beyond):
            continue
        found.add(path)
        found |= {stub for stub in (path.with_suffix(".pyi"),) if stub.is_file()}
        if at_import or path not in DOORS:
            waiting += _imports(path, at_import=at_import)
    return frozenset(found)


@cache
def _imports(path: Path, *, at_import: bool) -> tuple[Path, ...]:
    """Files that a file imports; of a package's `__init__` also those that its names are loaded from on first use."""
    is_lazy = path.name == "__init__.py" and not at_import
    stub = path.with_suffix(".pyi")
    text = path.read_text() + (stub.read_text() if is_lazy and stub.is_file() else "")
    nodes = _nodes(ast.parse(text), for_types=is_lazy)
    beside = path.parent if path.is_relative_to(BENCHMARKS) else BENCHMARKS
    found = (_file_of(name, beside) for node in nodes for name in _names(node))
    return tuple(dict.fromkeys(one for one in found if one is not None))


_HOLDERS = (ast.stmt, ast.excepthandler, ast.match_case)


def _nodes(tree: ast.AST, *, for_types: bool) -> Iterator[ast.AST]:
    """Statements of any depth; expressions import nothing."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not for_types:
            continue
        yield node
        waiting += (one for one in ast.iter_child_nodes(node) if isinstance(one, _HOLDERS))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _file_of(name: str, beside: Path) -> Path | None:
    """The file of a module; scripts import their neighbours by their bare names."""
    relative = Path(*name.split("."))
    for place in (beside, *FOLDERS):
        for path in (place / relative.with_suffix(".py"), place / relative / "__init__.py"):
            if path.is_file():
                return path
    return None
