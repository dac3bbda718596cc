"""The examples of frameworks run as they are, and the one for JAX hands over the norms that it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["huggingface_trainer", "accelerate_loop", "lightning_fit", "jax_log_norms"])
def test_an_example_runs_and_prints_its_noise_scale(name, tmp_path):
    environment = os.environ | {
        "NOISESCALE_URL": "http://127.0.0.1:9",
        "NOISESCALE_DIR": str(tmp_path),
        "NOISESCALE_STRICT": "1",
        "NUM_STEPS": "40",
        "OMP_NUM_THREADS": "1",
    }

    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=240,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert re.search(r"(examples|sequences) \[[\d.]+, [\d.]+\].*(resolved|tentative)", done.stdout)


@pytest.mark.slow
def test_the_norms_of_the_jax_example_are_those_of_its_micro_batches():
    import jax
    import numpy as np

    import jax_log_norms as example

    jax.config.update("jax_num_cpu_devices", 2)
    parameters, batch = example.make_parameters(jax.random.key(3)), example.make_batch(jax.random.key(4))
    step = example.make_step(jax.sharding.Mesh(jax.devices(), ("data",)))

    _, _, norms = step(parameters, example.optimizer.init(parameters), batch)

    def flat_gradient(part):
        gradient = jax.grad(example.loss_of)(parameters, part)
        return np.concatenate([np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(gradient)])

    assert len(jax.devices()) == 2
    size = example.BATCH_SIZE // (2 * example.NUM_MICRO_BATCHES)
    parts = [tuple(part[start : start + size] for part in batch) for start in range(0, example.BATCH_SIZE, size)]
    assert float(norms["sum_small_sq_norm"]) == pytest.approx(
        sum(gradient @ gradient for gradient in map(flat_gradient, parts)), rel=1e-5
    )
    whole = flat_gradient(batch)
    assert float(norms["big_sq_norm"]) == pytest.approx(whole @ whole, rel=1e-5)
