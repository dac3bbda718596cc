import numpy as np
import pytest

from noisescale.config import Config
from noisescale_lab.reproduce.claim.watched_run import exact_terms, terms_of, watch_run
from noisescale_lab.reproduce.registry import ALL

NOWHERE = Config(mode="disabled")


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("digits_mlp", 0.3),
        ("digits_ae_adam", 0.003),
        ("charlm_mlp", 0.3),
        ("charlm_transformer", 0.003),
        ("cartpole_pg", 0.05),
    ],
)
def test_hooks_on_single_examples_give_the_terms_of_the_stacked_engine(name: str, rate: float) -> None:
    """Four examples a step are four micro-batches of one: hooks and engine see the same per-example gradients."""
    task = ALL[name]()

    runs = [
        watch_run(task, batch=4, learning_rate=rate, seed=seed, steps=6, evaluated_at=[3], config=NOWHERE)
        for seed in (7, 8)
    ]
    watched = terms_of(runs)
    exact = exact_terms(task, batch=4, learning_rate=rate, seeds=(7, 8), steps=6)

    assert watched.trace_cov.shape == (6, 2)
    np.testing.assert_allclose(watched.trace_cov, exact.trace_cov, rtol=2e-3)
    np.testing.assert_allclose(watched.grad_sq_norm, exact.grad_sq_norm, rtol=1e-2, atol=2e-3 * exact.trace_cov.max())


def test_larger_batches_are_split_into_micro_batches_that_agree_within_their_noise() -> None:
    task = ALL["digits_mlp"]()

    run = watch_run(task, batch=64, learning_rate=0.3, seed=1, steps=40, evaluated_at=[], config=NOWHERE)
    watched, exact = terms_of([run]), exact_terms(task, batch=64, learning_rate=0.3, seeds=(1,), steps=40)

    assert {row.num_micro_batches for row in run.rows} == {4}
    for measured, true in ((watched.trace_cov, exact.trace_cov), (watched.grad_sq_norm, exact.grad_sq_norm)):
        difference = (measured - true)[:, 0]
        assert abs(difference.mean()) < 5 * difference.std(ddof=1) / np.sqrt(len(difference))
