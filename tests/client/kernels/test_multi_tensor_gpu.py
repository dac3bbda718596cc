"""What only a GPU shows: graphs, errors of memory and order, more elements than 32 bits count."""

import os
import shutil
import subprocess
import sys

import pytest
import torch

from noisescale.kernels import MultiTensor
from places import with_support

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

SIZES = (70_000, 5, 3000)

SANITIZER = shutil.which("compute-sanitizer")


def gradients(factor):
    return [torch.full((size,), float(factor), device="cuda") for size in SIZES]


def sq_norm_of(factor):
    return factor**2 * sum(SIZES)


def test_a_replayed_graph_reads_its_own_gradients_whatever_was_summed_up_since():
    multi_tensor = MultiTensor(SIZES, (torch.float32,) * 3, "cuda", kernels="triton")
    captured, others = gradients(1), [gradients(factor) for factor in range(2, 20)]
    multi_tensor.sq_norms(captured)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sums = multi_tensor.sq_norms(captured)

    for other in others:
        multi_tensor.sq_norms(other)
    for gradient in captured:
        gradient.fill_(3)
    graph.replay()

    assert float(sums.sq_norm[-1]) == pytest.approx(sq_norm_of(3), rel=1e-6)


def test_gradients_that_moved_are_captured_anew():
    multi_tensor = MultiTensor(SIZES, (torch.float32,) * 3, "cuda", kernels="triton")
    results = []
    multi_tensor.sq_norms(gradients(1))
    kept = [gradients(factor) for factor in (2, 5)]
    for bound in kept:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            sums = multi_tensor.sq_norms(bound)
        results.append((graph, sums))

    for graph, _ in results:
        graph.replay()

    totals = [float(sums.sq_norm[-1]) for _, sums in results]
    assert totals == pytest.approx([sq_norm_of(2), sq_norm_of(5)], rel=1e-6)


def test_more_than_two_to_the_31_elements_are_summed_up():
    size = 5_000_000_000
    tensor = torch.ones(size, dtype=torch.bfloat16, device="cuda")
    tensor[-1] = 1000
    multi_tensor = MultiTensor((size,), (torch.bfloat16,), "cuda", kernels="triton")

    sums = multi_tensor.sq_norms([tensor])

    assert float(sums.sq_norm[0]) == pytest.approx(size - 1 + 1e6, rel=1e-9)


@pytest.mark.skipif(SANITIZER is None, reason="needs compute-sanitizer")
@pytest.mark.parametrize("tool", ["memcheck", "racecheck"])
def test_the_sanitizer_finds_nothing(tool):
    code = (
        "from client.kernels.multi_tensor_cases import CASES, check\nfor name in CASES: check(name, 'triton', 'cuda')"
    )
    command = [str(SANITIZER), "--tool", tool, "--error-exitcode", "9", sys.executable, "-c", code]
    environment = os.environ | {"PYTHONPATH": with_support(), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}

    finished = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)

    assert finished.returncode == 0, finished.stdout + finished.stderr
