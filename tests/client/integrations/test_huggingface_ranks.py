"""`NoiseScaleCallback` under DistributedDataParallel: two gloo ranks against gradients computed by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from places import with_support
from trainer_runs import gradient_of, terms, token_mean_loss

pytestmark = pytest.mark.processes


def terms_by_hand(batches_of_ranks, model, weighing):
    counts_of_ranks = [
        [int((batch["labels"][:, 1:] != -100).sum()) for batch in batches] for batches in batches_of_ranks
    ]
    total = sum(map(sum, counts_of_ranks))
    shares = [
        count / total if weighing == "average" else count / sum(counts) / 2
        for counts in counts_of_ranks
        for count in counts
    ]
    gradients = [gradient_of(model, token_mean_loss(model, batch)) for batches in batches_of_ranks for batch in batches]
    return terms(gradients, shares, 16)


@pytest.mark.slow
@pytest.mark.parametrize("weighing", ["average", "by rank"])
def test_two_ranks_are_measured_as_one_batch(tmp_path, weighing):
    """Where each rank divides by its own tokens, half of the weight is each rank's."""
    environment = os.environ | {"PYTHONPATH": with_support(), "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("trainer_on_two_ranks.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]

    done = subprocess.run(
        [*command, script, tmp_path, weighing], env=environment, capture_output=True, text=True, timeout=240
    )

    assert done.returncode == 0, done.stderr[-4000:]
    rows = json.loads((tmp_path / "rows-0.json").read_text())
    seen = [torch.load(tmp_path / f"seen-{rank}.pt", weights_only=False) for rank in range(2)]
    assert [row["step"] for row in rows] == [0, 1]
    for step, row in enumerate(rows):
        trace_cov, grad_sq_norm = terms_by_hand(
            [of_rank["micro_batches"][step] for of_rank in seen], seen[0]["models"][step], weighing
        )
        assert (row["global_batch"], row["num_micro_batches"]) == (16, 8)
        assert row["sum_trace_cov"] == pytest.approx(trace_cov, rel=1e-4)
        assert row["sum_grad_sq_norm"] == pytest.approx(grad_sq_norm, abs=1e-4 * trace_cov / 16)
