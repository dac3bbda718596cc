"""What a job prints of a noise scale that is not what it will be."""

import random

import pytest

from client_runs import make_kept_run


def run_with(noise_scales, *, seed=0, **settings):
    """A run of steps with these noise scales, each known to a tenth."""
    run, _ = make_kept_run(**settings)
    generator = random.Random(seed)
    for value in noise_scales:
        x, y = value * generator.gauss(1, 0.1), generator.gauss(1, 0.1)
        run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=y + x / 8, big_sq_norm=y + x / 64)
    return run


def test_a_rising_noise_scale_is_printed_with_how_much_and_since_when():
    run = run_with(0.02 * step**1.5 for step in range(40))

    assert "resolved; rising: about " in str(run.noise_scale())
    assert str(run.noise_scale()).endswith(" × since step 19")
    assert run.recommendation().warnings[0].code == "early_in_run"


def test_a_plan_says_how_early_it_is():
    run = run_with([50.0] * 40, planned_steps=5_000)

    assert str(run.noise_scale()).endswith("; early: 0.8 % of the plan, and it rises while a run is young")


@pytest.mark.thorough
def test_a_noise_scale_that_stays_is_never_said_to_rise():
    for seed in range(20):
        run, _ = make_kept_run()
        for step in range(640):
            x, y = (
                50 * random.Random(1000 * seed + step).gauss(1, 0.2),
                random.Random(-1000 * seed - step).gauss(1, 0.2),
            )
            run.log_norms(small_batch_size=8, big_batch_size=64, small_sq_norm=y + x / 8, big_sq_norm=y + x / 64)
            if step >= 32 and step % 16 == 0:
                assert run.noise_scale().early is None, (seed, step)


def test_what_is_early_is_said_again_when_it_is_resolved_later(caplog):
    caplog.set_level("INFO", "noisescale")

    run_with(1 + 0.02 * min(step, 60) ** 1.5 for step in range(300))

    said = [one for one in caplog.messages if ", resolved" in one]
    assert "; rising: " in said[0]
    assert said[-1].endswith(", resolved")
