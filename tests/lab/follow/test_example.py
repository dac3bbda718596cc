"""The example runs as it is: it says what it would do, and acts where it is told to."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

EXAMPLE = Path(__file__).parents[3] / "examples" / "follow_noise_scale.py"


@pytest.mark.slow
@pytest.mark.parametrize(("told", "ended"), [({}, "ended at batch 32,"), ({"FOLLOW": "1"}, r"ended at batch \d{3},")])
def test_the_example_follows_where_it_is_told_to(tmp_path, told, ended):
    environment = os.environ | {
        "NOISESCALE_URL": "http://127.0.0.1:9",
        "NOISESCALE_DIR": str(tmp_path),
        "NOISESCALE_STRICT": "1",
        "OMP_NUM_THREADS": "1",
    }

    done = subprocess.run(
        [sys.executable, EXAMPLE], env=environment | told, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )

    assert done.returncode == 0, done.stderr
    assert re.search(r"batch 32 to \d+ examples", done.stdout)
    assert re.search(ended, done.stdout)
