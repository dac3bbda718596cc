"""Several processes of one server count together."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from noisescale_server.process import serving
from noisescale_server.process.own_metrics import SHARED_FOLDER, ProcessMetrics, forget_the_dead, kind_of

COUNTING = """
from noisescale_server.process.own_metrics import ProcessMetrics
metrics = ProcessMetrics()
metrics.count_batch(num_records=7, num_lost=2, num_rejected=0)
metrics._connections.inc(3)
"""
SUMMING = """
from noisescale_server.process.own_metrics import ProcessMetrics
for family in ProcessMetrics().collect():
    for sample in family.samples:
        print(sample.name, *sample.labels.values(), sample.value)
"""


@pytest.mark.slow
@pytest.mark.processes
def test_each_process_says_what_all_have_counted_and_of_the_present_what_the_living_say(tmp_path: Path) -> None:
    environment = os.environ | {SHARED_FOLDER: str(tmp_path)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COUNTING], env=environment, check=True, timeout=60)

    said = subprocess.run(
        [sys.executable, "-c", SUMMING], env=environment, check=True, capture_output=True, text=True, timeout=60
    ).stdout.splitlines()

    assert "noisescale_records_total accepted 14.0" in said
    assert "noisescale_records_total lost 4.0" in said
    assert "noisescale_database_connections_in_use 0.0" in said


def test_files_of_living_processes_stay(tmp_path: Path) -> None:
    for pid in (os.getpid(), 2**22 - 1):
        (tmp_path / f"gauge_livesum_{pid}.db").touch()
        (tmp_path / f"counter_{pid}.db").touch()

    forget_the_dead(tmp_path)

    left = sorted(file.name for file in tmp_path.iterdir())
    assert left == sorted([f"counter_{os.getpid()}.db", f"counter_{2**22 - 1}.db", f"gauge_livesum_{os.getpid()}.db"])


def test_processes_have_a_folder_together_while_they_are_served() -> None:
    with serving.counting_together():
        folder = Path(os.environ[SHARED_FOLDER])
        assert folder.is_dir()

    assert SHARED_FOLDER not in os.environ
    assert not folder.exists()


def test_a_single_process_also_says_what_it_takes_of_the_machine() -> None:
    names = {family.name for family in ProcessMetrics().collect()}

    assert {"process_resident_memory_bytes", "process_cpu_seconds"} <= names


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api/v1/streams/1/batches", "ingest"),
        ("/api/v1/runs", "api"),
        ("/metrics", "metrics"),
        ("/runs", "page"),
        ("/livez", "page"),
    ],
)
def test_requests_are_of_four_kinds(path: str, kind: str) -> None:
    assert kind_of(path) == kind
