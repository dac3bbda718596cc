"""Which code a file of results measures, and a fingerprint of it: a figure is stale when that has changed since.

The fingerprint is of what the code does: moves, imports, docstrings and comments do not change it. It stands in a
column `code` beside every figure; tests/benchmarks/test_readme_figures.py holds README's figures against it.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).parents[1]

CORE = "client/src/noisescale_core"
CLIENT = "client/src/noisescale"
SERVER = "server/src/noisescale_server"
LAB = "lab/src/noisescale_lab"

MEASURED_CODE = MappingProxyType(
    {
        "asking": (f"{CLIENT}/ask", f"{CORE}/advice"),
        "capture": (f"{CLIENT}/capture", f"{CLIENT}/kernels", f"{CLIENT}/recorder.py", f"{CLIENT}/updates.py"),
        "coverage": (f"{CORE}/estimators/uncertainty.py", f"{CORE}/estimators/signal.py"),
        "fits": (f"{SERVER}/analysis/batch_sweep",),
        "following": (f"{LAB}/follow",),
        "hot_path": (f"{CLIENT}/recorder.py", f"{CLIENT}/recording.py", f"{CLIENT}/updates.py", f"{CLIENT}/transport"),
        "import": (f"{CLIENT}/__init__.py", f"{CLIENT}/lazy.py", "client/pyproject.toml"),
        "ingest": (f"{SERVER}/api/streams.py", f"{SERVER}/services/ingestion.py", f"{SERVER}/storage/pyramid.py"),
        "kernels-cpu": (f"{CLIENT}/kernels",),
        "limits": (f"{SERVER}/api/body.py", f"{SERVER}/impatient_http.py"),
        "load": (f"{SERVER}/services/ingestion.py", f"{SERVER}/storage/pyramid.py", f"{CLIENT}/transport"),
        "page": ("dashboard/src/noisescale_dashboard/pages/run.py", "dashboard/src/noisescale_dashboard/figures"),
        "policies": (
            *(f"{LAB}/follow/{name}.py" for name in ("policy", "policy_parts")),
            *(
                f"{LAB}/reproduce/advice/{name}.py"
                for name in ("branches", "ours", "replay", "run", "simple_policies", "sweep")
            ),
        ),
        "recommendation": (f"{CORE}/advice", f"{SERVER}/services/run_advice.py", f"{SERVER}/services/whole_run.py"),
        "reproduce": (f"{LAB}/reproduce/claim", f"{LAB}/reproduce/tasks", f"{LAB}/reproduce/stacked"),
        "run_list": (f"{SERVER}/services/runs.py", f"{SERVER}/storage/run_queries.py"),
        "series": (f"{SERVER}/services/series.py", f"{SERVER}/services/windows.py", f"{SERVER}/storage/series.py"),
        "spool": (f"{CLIENT}/transport",),
        "torture": (
            f"{SERVER}/services/ingestion.py",
            *(f"{CLIENT}/transport/{name}.py" for name in ("disk_spool", "frames", "segments", "stream", "uploader")),
        ),
        "truth": (f"{CORE}/estimators/noise_scale.py", f"{CORE}/estimators/windows.py"),
        "workers": (f"{SERVER}/serving.py", f"{SERVER}/services/ingestion.py"),
    }
)
"""From a file of results to files and folders."""


@cache
def fingerprint(what: str) -> str:
    """Of the code that a file of results measures, as it is now; empty where nobody has said which code that is.

    Args:
        what: Name of the results, without ending.
    """
    paths = [path for one in MEASURED_CODE.get(what, ()) for path in _files(ROOT / one)]
    return fingerprint_of((path.read_text() for path in paths), [path.suffix == ".py" for path in paths])


def fingerprint_of(texts: Iterable[str], are_python: Iterable[bool]) -> str:
    """Of these files in any order: where they lie is no part of it.

    Args:
        texts: Their contents.
        are_python: Whether each is Python; the others count as they are.
    """
    what_it_does: dict[bool, Callable[[str], str]] = {True: _what_it_does, False: str}
    pairs = zip(texts, are_python, strict=True)
    digests = sorted(hashlib.sha256(what_it_does[is_python](text).encode()).hexdigest() for text, is_python in pairs)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:12] if digests else ""


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _what_it_does(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _says_nothing(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _says_nothing(node: ast.stmt) -> bool:
    """Imports and texts that stand alone: docstrings, and what is said of a constant below it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
