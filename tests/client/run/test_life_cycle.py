"""Whole processes: import, exit, failure, fork, examples; against a stub server on loopback."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quick import quick_or_slow
from stub_server import http_stub

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[3]


@pytest.fixture
def stub():
    with http_stub() as running:
        yield running


def python(code_or_path, tmp_path, **environ):
    """The finished process; its environment has nothing of ours but what is given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("NOISESCALE_")}
    arguments = [str(code_or_path)] if isinstance(code_or_path, Path) else ["-c", code_or_path]
    return subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**clean, "NOISESCALE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


LOG_NORMS = """
import noisescale
for step in range(20):
    noisescale.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=3.0 + step % 3, big_sq_norm=1.0)
"""


def test_importing_is_quick_and_loads_nothing_heavy(tmp_path):
    """A cliff guard, ten times the 150 ms that the benchmark holds it to."""
    code = (
        "import sys, time; start = time.perf_counter(); import noisescale; took = time.perf_counter() - start\n"
        "heavy = [m for m in ('torch', 'triton', 'numpy', 'httpx', 'noisescale.run.run') if m in sys.modules]\n"
        "print(took, heavy, noisescale.__version__)"
    )

    took, heavy, version = python(code, tmp_path).stdout.split(maxsplit=2)

    assert float(took) < 1.5
    assert heavy == "[]"
    assert version.strip() == "0.1.0"


def test_a_run_loads_neither_theory_nor_httpx_before_they_are_needed(tmp_path):
    code = (
        "import sys, noisescale; noisescale.init(mode='disabled')\n"
        "early = [m for m in sys.modules if m.split('.')[0] == 'httpx' or m.startswith('noisescale_core.theory')]\n"
        "print(early)"
    )

    assert python(code, tmp_path).stdout.strip() == "[]"


def test_log_norms_works_where_torch_is_not_installed(tmp_path, stub):
    without_torch = "import sys; sys.modules['torch'] = None\n"

    process = python(without_torch + LOG_NORMS + "print(noisescale.noise_scale())", tmp_path, NOISESCALE_URL=stub.url)

    assert process.returncode == 0, process.stderr
    assert " examples [" in process.stdout
    assert stub.ledger.steps() == list(range(20))


def test_every_name_of_the_package_loads_and_is_listed(tmp_path):
    code = "import noisescale; [getattr(noisescale, name) for name in noisescale.__all__]; print(len(dir(noisescale)))"

    process = python(code, tmp_path)

    assert process.returncode == 0, process.stderr


def test_an_unknown_name_is_an_attribute_error():
    import noisescale

    with pytest.raises(AttributeError, match="has no attribute 'log_gradient'"):
        _ = noisescale.log_gradient


def test_a_process_that_ends_delivers_and_finishes(tmp_path, stub):
    process = python(LOG_NORMS, tmp_path, NOISESCALE_URL=stub.url, NOISESCALE_API_KEY="ns_w_key")

    assert process.returncode == 0
    assert stub.ledger.steps() == list(range(20))
    [stored] = stub.ledger.stored.values()
    assert stored[1][1]["stream"]["estimator"] == "norms"
    assert stored[22] == ("finish", {"seq": 22, "status": "finished", "wall_time": pytest.approx(time.time(), abs=60)})
    stub.ledger.check()


def test_a_process_that_ends_says_once_what_it_found_what_to_do_and_where_that_is_to_be_seen(tmp_path, stub):
    process = python(LOG_NORMS, tmp_path, NOISESCALE_URL=stub.url)

    begun, on_the_way, last = process.stderr.splitlines()
    assert "/runs/" in begun
    assert on_the_way.startswith("noisescale: noise scale after 16 measured steps: ")
    assert last.startswith("noisescale: noise scale of default: 48.0 examples [36.7, 62.2], z = 19.6, tentative; ")
    assert "early: 20 steps, and it rises while a run is young. " in last
    said = re.search(r"young\. (Raise|Lower|Try a larger batch|Try a smaller batch|Keep)[: ]+[^.]+ \((.+?) [0-9]", last)
    assert said[2] in ("cheaper with a probability of", "expected to cost")
    assert re.search(rf"\. {stub.url}/runs/[0-9a-f-]{{36}}$", last)


def test_a_training_that_raises_is_marked_failed(tmp_path, stub):
    process = python(LOG_NORMS + "raise RuntimeError('diverged')", tmp_path, NOISESCALE_URL=stub.url)

    assert process.returncode == 1
    [stored] = stub.ledger.stored.values()
    assert stored[22][1]["status"] == "failed"


def test_without_a_server_the_end_is_quick_and_says_what_was_not_delivered(tmp_path):
    start = time.monotonic()

    process = python(LOG_NORMS, tmp_path, NOISESCALE_URL="http://127.0.0.1:9")

    assert process.returncode == 0
    assert "22 of 22 records" in process.stderr
    assert "noisescale up" in process.stderr
    assert time.monotonic() - start < 8


def test_a_killed_process_leaves_what_was_delivered(tmp_path, stub):
    code = "import os, noisescale.run.active_run" + LOG_NORMS
    code += "noisescale.run.active_run.active()._main._outbox.flush(5); os.kill(os.getpid(), 9)"

    process = python(code, tmp_path, NOISESCALE_URL=stub.url)

    assert process.returncode == -9
    assert stub.ledger.steps() == list(range(20))
    assert "finish" not in stub.ledger.kinds()
    stub.ledger.check()


def test_forked_children_that_log_nothing_leave_nothing(tmp_path, stub):
    code = LOG_NORMS + (
        "import os, sys\n"
        "child = os.fork()\n"
        "if child == 0: sys.exit()\n"
        "os.waitpid(child, 0)\n"
    )  # fmt: skip

    process = python(code, tmp_path, NOISESCALE_URL=stub.url)

    assert process.returncode == 0, process.stderr
    assert len(stub.ledger.stored) == 1
    assert stub.ledger.kinds().count("finish") == 1


def test_processes_that_share_a_run_id_have_streams_of_their_own(tmp_path, stub):
    run_id = "7d1f0c9e-2222-4333-8444-555566667777"

    for _ in range(2):
        python(LOG_NORMS, tmp_path, NOISESCALE_URL=stub.url, NOISESCALE_RUN_ID=run_id)

    assert len(stub.ledger.stored) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", quick_or_slow(["three_lines", "accumulation"], ["three_lines"]))
def test_an_example_trains_and_logs(name, tmp_path, stub):
    process = python(ROOT / "examples" / f"{name}.py", tmp_path, NOISESCALE_URL=stub.url, NUM_STEPS="5")

    assert process.returncode == 0, process.stderr
    assert stub.ledger.steps() == [0, 1, 2, 3, 4]
    assert process.stdout == "not resolved yet: 5 of 8 updates\n"
    [stored] = stub.ledger.stored.values()
    rows = [row for kind, row in stored.values() if kind == "measurements"]
    assert all(row["sum_trace_cov"] > 0 and row["num_micro_batches"] == 8 for row in rows)
    assert {kind for kind, _ in stored.values()} >= {"run", "measurements", "groups", "finish"}


@pytest.mark.slow
def test_the_example_of_two_optimizers_logs_two_runs(tmp_path, stub):
    process = python(ROOT / "examples" / "gan.py", tmp_path, NOISESCALE_URL=stub.url, NUM_STEPS="5")

    assert process.returncode == 0, process.stderr
    assert process.stdout.count("not resolved yet: 5 of 8 updates") == 2
    assert len(stub.ledger.stored) == 2


@pytest.mark.slow
def test_an_example_runs_with_everything_off(tmp_path):
    process = python(ROOT / "examples" / "three_lines.py", tmp_path, NOISESCALE_MODE="disabled", NUM_STEPS="2")

    assert (process.returncode, process.stderr) == (0, "")
