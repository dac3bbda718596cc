"""One process in which Triton interprets, for all files of kernels."""

import json
import os
import subprocess
import sys

import pytest

from client.kernels import interpreted_cases
from places import with_support


@pytest.fixture(scope="session")
def all_interpreted(request):
    """By kernel and case, what the kernels give in the cases of this session's tests."""
    asked = {kernel: set() for kernel in interpreted_cases.CHECKS}
    for item in request.session.items:
        if "interpreted" in getattr(item, "fixturenames", ()):
            asked[kernel_of(item.path)].add(item.callspec.params["name"])
    cases = json.dumps({kernel: sorted(names) for kernel, names in asked.items()})
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": with_support(), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, interpreted_cases.__file__, cases]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)


@pytest.fixture(scope="module")
def interpreted(request, all_interpreted):
    """By case, what the kernel that a file is about gives where Triton interprets."""
    return all_interpreted[kernel_of(request.path)]


def kernel_of(path):
    """The kernel that a file of tests is about."""
    return path.stem.removeprefix("test_").removesuffix("_kernel")
