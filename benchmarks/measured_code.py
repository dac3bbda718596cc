"""Which code a file of results measures, and a fingerprint of it: a figure is stale when that has changed since.

The code is found, not listed: the benchmark's script, what it imports of ours, and what that imports in turn. Where
the work is done by a process that the script starts, `MEASURED` says where it begins there, and what is imported on
the way without being driven. Libraries count by no version: a figure is of the versions that its date had.

The fingerprint is of what the code does: moves, imports, docstrings and comments do not change it, save where imports
are what is measured. It stands in a column `code` beside every figure.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from imported_code import BENCHMARKS, ROOT, imported

CORE = "client/src/noisescale_core"
CLIENT = "client/src/noisescale"
SERVER = "server/src/noisescale_server"
DASHBOARD = "dashboard/src/noisescale_dashboard"
LAB = "lab/src/noisescale_lab"
IMPORTERS = "importers/src/noisescale_importers"

HOW_RESULTS_ARE_KEPT = tuple(
    f"benchmarks/{name}.py" for name in ("results_file", "measured_code", "imported_code", "smoke", "kernels/items")
)
"""Imported by every benchmark, measured by none."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Where the code of a file of results is found.

    Attributes:
        script: The benchmark, below benchmarks/.
        starts: Files and folders where the measured work begins, beside what the script imports.
        left_out: What is imported from there and not driven.
        alone: Files and folders that count without what they import, of any kind.
        at_import: Whether importing is what is measured: imports count, and what they do not load does not.
    """

    script: str
    starts: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    at_import: bool = False


# what a request passes whatever it asks for; how Postgres and its tables are set up; what is done once, at the start
_EVERY_REQUEST = tuple(
    f"{SERVER}/{name}.py"
    for name in (
        "api/access/gate",
        "api/platform/openapi",
        "process/impatient_http",
        "process/serving",
        "storage/platform/engine",
    )
)
_ITS_SURROUNDINGS = (f"{SERVER}/app.py", f"{SERVER}/embedded/cluster.py", "migrations/versions")
_ITS_START = tuple(
    f"{SERVER}/{name}"
    for name in ("embedded", "process/migrating.py", "process/settings.py", "process/start_policy.py")
)

# parts that much imports and that not every benchmark drives
_FITTING = (f"{SERVER}/analysis/sweeps", f"{SERVER}/services/calibration/calibration.py")
_ADVICE = (
    f"{CORE}/advice",
    f"{CORE}/theory",
    f"{SERVER}/analysis",
    f"{SERVER}/services/recommendation/known_kappa.py",
    *_FITTING,
)
_READING = tuple(
    f"{SERVER}/{name}.py" for name in ("services/series/whole_run", "api/runs/schemas", "services/series/events")
)
_WATCHING = (f"{CLIENT}/capture", f"{CLIENT}/kernels")


def _server(script: str, *routes: str, left_out: tuple[str, ...] = ()) -> Measured:
    """A benchmark that asks a server.

    Args:
        script: Below benchmarks/.
        routes: Modules of `api` that answer.
        left_out: Beside what a server does once, when it starts.
    """
    starts = (*(f"{SERVER}/api/{name}.py" for name in routes), *_EVERY_REQUEST)
    return Measured(script, starts, (*_ITS_START, *left_out), _ITS_SURROUNDINGS)


def _client(script: str, *starts: str) -> Measured:
    """A benchmark of calls that log numbers given to them: no model is watched, nothing is asked or sent.

    Args:
        script: Below benchmarks/.
        starts: Below the client.
    """
    asking = tuple(f"{CLIENT}/{name}" for name in ("ask", "commands"))
    sending = tuple(f"{CLIENT}/transport/upload/{name}.py" for name in ("http", "uploader", "late_delivery"))
    return Measured(script, tuple(f"{CLIENT}/{name}" for name in starts), (*_WATCHING, *asking, *sending))


_RUN_PAGE_ASKS = tuple(f"{SERVER}/api/{name}.py" for name in ("series", "recommendation/recommendation", "runs/runs"))
_UPLOADING = (f"{CLIENT}/transport", f"{CLIENT}/run/run.py")

MEASURED = MappingProxyType(
    {
        "asking": Measured(
            "benchmark_asking.py",
            (f"{CLIENT}/ask", f"{SERVER}/api/recommendation/recommendation.py"),
            (*_WATCHING, *_FITTING),
        ),
        "between_runs": Measured("benchmark_between_runs.py", left_out=(*_WATCHING, f"{CLIENT}/transport")),
        "between_runs_unseen": Measured(
            "benchmark_between_runs_unseen.py", left_out=(*_WATCHING, f"{CLIENT}/transport")
        ),
        "capture": Measured("benchmark_capture.py", _WATCHING),
        "comparison": _server("benchmark_comparison.py", "comparison/comparison"),
        "cost": _server("benchmark_cost.py", "cost/cost", left_out=_FITTING),
        "coverage": Measured("benchmark_coverage.py", left_out=(*_ADVICE, *_READING, f"{SERVER}/services/runs.py")),
        "dashboard": Measured("dashboard/benchmark_dashboard.py", (SERVER, DASHBOARD), alone=(DASHBOARD,)),
        "fits": Measured("benchmark_fits.py", alone=(f"{SERVER}/data/mlperf_convergence.json",)),
        "following": Measured(
            "benchmark_following.py", left_out=_WATCHING, alone=("benchmarks/policies/references.csv",)
        ),
        "following_programs": Measured(
            "policies/benchmark_following_programs.py",
            left_out=_WATCHING,
            alone=("lab/src/noisescale_lab/follow/rate_lines.json",),
        ),
        "foreign_answers": Measured(
            "foreign_answers.py", (f"{SERVER}/api/ingest/streams.py", *_EVERY_REQUEST, *_UPLOADING)
        ),
        "fuzz": Measured("fuzz_api.py", (SERVER,)),
        "hot_path": _client("benchmark_hot_path.py", "run/run.py"),
        "import": Measured(
            "benchmark_import.py", (f"{CLIENT}/__init__.py",), alone=("client/pyproject.toml",), at_import=True
        ),
        "import_runs": Measured(
            "benchmark_import_runs.py",
            (IMPORTERS, f"{SERVER}/api/ingest/streams.py", f"{SERVER}/api/sweeps/critical_batch.py", *_EVERY_REQUEST),
            (
                *_ITS_START,
                *_WATCHING,
                f"{CLIENT}/ask",
                f"{CLIENT}/commands",
                f"{SERVER}/services/calibration/calibration.py",
            ),
            _ITS_SURROUNDINGS,
        ),
        "citus": _server("citus_beside_one.py", "ingest/streams", "runs/runs", left_out=_ADVICE),
        "citus_faults": Measured("citus_faults.py", (f"{SERVER}/api/ingest/streams.py", *_EVERY_REQUEST)),
        "ingest": _server("benchmark_ingest.py", "ingest/streams", left_out=(*_ADVICE, *_READING)),
        "gpu_correctness": Measured("gpu/correctness.py", _WATCHING, alone=("tests/client/kernels",)),
        "gpu_language_model": Measured("gpu/language_model.py", _WATCHING),
        "gpu_outer_products": Measured("gpu/outer_products.py"),
        "gpu_steps": Measured("gpu/steps.py", _WATCHING),
        "gpu_tuning": Measured("gpu/tuning.py"),
        "kernels": Measured("kernels/benchmark_kernels.py"),
        "kinds": Measured("benchmark_kinds.py"),
        "limits": _server("benchmark_limits.py", "ingest/streams", "runs/runs", left_out=_ADVICE),
        "load": _server("load_10k_runs.py", "ingest/streams", left_out=(*_ADVICE, *_READING)),
        "metrics": _server("benchmark_metrics.py", "telemetry/routes", left_out=(*_ADVICE, *_READING)),
        "million_runs": _server(
            "benchmark_million_runs.py",
            "ingest/streams",
            "recommendation/recommendation",
            "runs/runs",
            "series",
            left_out=_FITTING,
        ),
        "mutants": Measured("mutants.py", (SERVER, f"{CLIENT}/transport")),
        "demo": Measured(
            "policies/benchmark_demo.py", alone=("examples/demo/digits.py", "examples/demo/characters.py")
        ),
        "quadratics": Measured("policies/benchmark_quadratics.py"),
        "kappa": Measured("policies/benchmark_kappa.py", alone=("benchmarks/policies/references.csv",)),
        "odds": Measured("policies/benchmark_odds.py", alone=("benchmarks/policies/references.csv",)),
        "far_rates": Measured("policies/benchmark_far_rates.py", alone=("benchmarks/policies/references.csv",)),
        "rate_signals": Measured("policies/benchmark_rate_signals.py", alone=("benchmarks/policies/references.csv",)),
        "odds_over_time": Measured("policies/benchmark_odds_over_time.py"),
        "outlook": Measured("benchmark_outlook.py"),
        "rests": Measured("benchmark_rests.py"),
        "page": Measured(
            "benchmark_page.py",
            (f"{DASHBOARD}/run/page.py", *_RUN_PAGE_ASKS, *_EVERY_REQUEST),
            (*_ITS_START, *_FITTING),
            (f"{DASHBOARD}/app.py", f"{DASHBOARD}/assets", *_ITS_SURROUNDINGS),
        ),
        "path": Measured("benchmark_path.py", (f"{CLIENT}/capture/path",), (*_ADVICE, f"{CLIENT}/transport")),
        "per_example": Measured("benchmark_per_example.py"),
        "priors": Measured("benchmark_priors.py", alone=(f"{SERVER}/data/language_model_batch_sizes.json",)),
        "policies": Measured("policies/benchmark_policies.py", alone=("benchmarks/policies/references.csv",)),
        "policies_ours": Measured("policies/benchmark_policies.py", alone=("benchmarks/policies/references.csv",)),
        "policies_recommendations": Measured(
            "policies/benchmark_recommendations.py", alone=("benchmarks/policies/references.csv",)
        ),
        "rates": Measured(
            "policies/benchmark_rates.py", alone=(f"{CORE}/advice/learning_rate/rate_coefficients.json",)
        ),
        "rates_design": Measured(
            "policies/benchmark_rates.py", alone=(f"{CORE}/advice/learning_rate/rate_coefficients.json",)
        ),
        "recommendation": _server(
            "benchmark_recommendation.py", "recommendation/recommendation", "runs/runs", left_out=_FITTING
        ),
        "report": Measured("benchmark_report.py", (f"{DASHBOARD}/report", f"{CLIENT}/commands")),
        "reproduce": Measured("benchmark_reproduce.py", (f"{LAB}/reproduce/claim/command.py",)),
        "run_list": _server("benchmark_run_list.py", "runs/runs", left_out=_FITTING),
        "series": _server("benchmark_series.py", "series", left_out=_ADVICE),
        "spool": _client("benchmark_spool.py", "run/run.py"),
        "step_overhead": Measured("step_overhead/benchmark_step_overhead.py", _WATCHING),
        "torture": Measured("torture.py", (f"{SERVER}/api/ingest/streams.py", *_EVERY_REQUEST, *_UPLOADING)),
        "turns": Measured("benchmark_turns.py", alone=(f"{SERVER}/data/language_model_batch_sizes.json",)),
        "truth": Measured("truth/benchmark_truth.py"),
        "workers": _server("benchmark_workers.py", "ingest/streams", "platform/health", left_out=(*_ADVICE, *_READING)),
        "wrong_keys": _server("benchmark_wrong_keys.py", "runs/runs", left_out=_ADVICE),
    }
)
"""From the name of a file of results, or the words that it begins with, to what it measures."""


@cache
def fingerprint(what: str) -> str:
    """Of the code that a file of results measures, as it is now.

    Args:
        what: Name of the results, without ending.
    """
    counts_imports = measured(what).at_import
    return joined(
        _digest_of(path, with_imports=counts_imports and not path.is_relative_to(BENCHMARKS)) for path in code_of(what)
    )


@cache
def _digest_of(path: Path, *, with_imports: bool) -> str:
    return digest(path.read_bytes(), path.suffix, with_imports=with_imports)


def measured(what: str) -> Measured:
    """What a file of results measures: `kernels-cpu` what `kernels` does, `truth_peers` what `truth` does.

    Args:
        what: Name of the results, without ending.

    Raises:
        KeyError: If nobody has said.
    """
    words = re.split("([-_])", what)
    for count in range(len(words), 0, -2):
        if (shorter := "".join(words[:count])) in MEASURED:
            return MEASURED[shorter]
    raise KeyError(f"say in measured_code.py which benchmark writes results/{what}.csv")


def code_of(what: str) -> frozenset[Path]:
    """The files that a file of results measures.

    Args:
        what: Its name, without ending.
    """
    asked = measured(what)
    starts = [BENCHMARKS / asked.script, *(file for one in asked.starts for file in _files(one, "*.py"))]
    left_out = [ROOT / one for one in (*asked.left_out, *HOW_RESULTS_ARE_KEPT)]
    alone = (file for one in asked.alone for file in _files(one, "*"))
    return imported(starts, left_out=left_out, at_import=asked.at_import) | frozenset(alone)


def joined(digests: Iterable[str]) -> str:
    """One fingerprint of several files in any order: where they lie is no part of it.

    Args:
        digests: Of each.
    """
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()[:12]


def digest(content: bytes, suffix: str, *, with_imports: bool = False) -> str:
    """Of what a file does, where it is Python, else of its bytes.

    Args:
        content: Of the file.
        suffix: Of its name.
        with_imports: Whether imports are a part of what it does.
    """
    counted = _what_it_does(content, with_imports=with_imports) if suffix == ".py" else content
    return hashlib.sha256(counted).hexdigest()


def _files(name: str, pattern: str) -> list[Path]:
    path = ROOT / name
    if not path.is_dir():
        return [path]
    return [one for one in path.rglob(pattern) if one.is_file() and one.parent.name != "__pycache__"]


def _what_it_does(content: bytes, *, with_imports: bool) -> bytes:
    tree = ast.parse(content)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            kept = [one for one in body if not _says_nothing(one, with_imports=with_imports)]
            node.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.dump(tree).encode()


def _says_nothing(node: ast.stmt, *, with_imports: bool) -> bool:
    """Imports and texts that stand alone: docstrings, and what is said of a constant below it."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return not with_imports
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_fresh(what: str, rows: Sequence[dict[str, str]]) -> bool:
    """Whether a file of results is of the code as it is.

    Args:
        what: Its name without ending.
        rows: Of the file.
    """
    codes = {row.get("code") for row in rows}
    return len(codes) == 1 and None not in codes and codes == {fingerprint(what)}
