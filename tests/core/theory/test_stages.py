import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import ramps, schedule
from noisescale_core.theory.ramps import Doublings, LinearRamp
from noisescale_core.theory.schedule import Stretch
from noisescale_core.theory.stages import Bounds, outcome_of, stages

PROFILE = [Stretch(100, 10 * 1.2**i) for i in range(30)]


def test_stages_follow_each_other_and_take_what_their_batches_take():
    found = stages(PROFILE, examples_per_step=400, bounds=Bounds(multiple_of=8))

    assert found[0].first_step == found[0].first_example == 0
    for before, after in itertools.pairwise(found):
        assert after.first_step == pytest.approx(before.first_step + before.steps)
        assert after.first_example == pytest.approx(before.first_example + before.examples)
    for stage in found:
        assert stage.examples == pytest.approx(stage.batch * stage.steps)
        assert stage.batch % 8 == 0


def test_a_batch_rises_only_by_more_than_the_hysteresis():
    found = stages(PROFILE, examples_per_step=400, bounds=Bounds(hysteresis=1.5))

    ratios = [after.batch / before.batch for before, after in itertools.pairwise(found)]
    assert 3 < len(found) < len(PROFILE)
    assert min(ratios) > 1.5


@given(noise_scales=st.lists(st.floats(1, 1e5), min_size=1, max_size=30), now=st.none() | st.integers(1, 4096))
def test_by_default_the_batch_never_falls(noise_scales, now):
    found = stages([Stretch(10, phi) for phi in noise_scales], examples_per_step=100, bounds=Bounds(), now=now)

    batches = ([] if now is None else [now]) + [stage.batch for stage in found]
    assert batches == sorted(batches)


def test_where_it_may_fall_it_follows_down():
    falling = [Stretch(100, phi) for phi in (10_000, 100)]

    kept = stages(falling, examples_per_step=100, bounds=Bounds())
    followed = stages(falling, examples_per_step=100, bounds=Bounds(may_fall=True))

    assert [stage.batch for stage in kept] == [1000]
    assert [stage.batch for stage in followed] == [1000, 100]


@given(price=st.floats(1, 1e4))
def test_stages_cost_little_more_than_the_exact_schedule(price):
    exact = schedule.best_outcome(PROFILE, examples_per_step=price).cost(price)

    coarse = outcome_of(stages(PROFILE, examples_per_step=price, bounds=Bounds())).cost(price)

    assert exact <= coarse * (1 + 1e-12)
    assert coarse <= 1.02 * exact


@given(batch=st.floats(0.1, 1e6), multiple=st.integers(1, 500), powers=st.booleans(), largest=st.floats(500, 1e6))
def test_rounding_takes_the_nearest_batch_that_can_be_run(batch, multiple, powers, largest):
    bounds = Bounds(multiple_of=multiple, largest=largest, powers_of_two=powers)
    near = round(batch / multiple)
    counts = (
        [2**k for k in range(21)] if powers else {1, max(1, near - 1), max(1, near), near + 1, int(largest / multiple)}
    )
    feasible = [n * multiple for n in counts if n * multiple <= largest]

    found = bounds.round(batch)

    wanted = min(batch, largest)
    assert found in feasible
    assert abs(math.log(found / wanted)) <= min(abs(math.log(n / wanted)) for n in feasible) + 1e-9


def test_rounding_reaches_the_smallest():
    assert Bounds(multiple_of=64, smallest=100).round(10) == 128
    assert Bounds(multiple_of=64, smallest=100, largest=128).round(10) == 128


def test_the_linear_ramp_of_gpt3_in_tokens():
    """32,000 tokens rising to 3.2 million over 12 billion, Brown et al. 2020, appendix B; steps by quadrature."""
    ramp = LinearRamp(32_000, 3_200_000, 12e9)
    num_parts, end = 100_000, 300e9

    by_quadrature = sum(12e9 / num_parts / ramp.batch((i + 0.5) * 12e9 / num_parts) for i in range(num_parts))

    assert ramp.batch(0) == 32_000
    assert ramp.batch(6e9) == pytest.approx(1_616_000)
    assert ramp.batch(1e12) == 3_200_000
    assert ramp.steps(12e9) == pytest.approx(by_quadrature, rel=1e-4)
    assert ramp.steps(end) == pytest.approx(by_quadrature + (end - 12e9) / 3_200_000, rel=1e-4)


def test_a_flat_ramp_is_a_constant_batch():
    assert LinearRamp(64, 64, 1e6).steps(5e5) == pytest.approx(5e5 / 64)


def test_the_doublings_of_merrill():
    """1024 to 2048 at 168 billion tokens and to 4096 at 503 billion, learning rate × √2 each."""
    ramp = Doublings(1024, (168e9, 503e9))

    assert [ramp.batch(at) for at in (0, 167e9, 168e9, 600e9)] == [1024, 1024, 2048, 4096]
    assert ramp.learning_rate_factor(600e9) == pytest.approx(2)
    assert Doublings(8, (0.0, 0.5)).batch(0) == 16
    assert ramps.should_double(batch=1024, local_critical_batch=2049)
    assert not ramps.should_double(batch=1024, local_critical_batch=2048)


def test_growing_the_batch_keeps_the_noise_of_a_cut_until_the_batch_is_full():
    free = ramps.grow_instead_of_cutting(batch=256, learning_rate=0.4, divisor=5)
    full = ramps.grow_instead_of_cutting(batch=256, learning_rate=0.4, divisor=5, largest_batch=512)

    assert (free.batch, free.learning_rate) == (1280, 0.4)
    assert (full.batch, full.learning_rate) == (512, pytest.approx(0.16))
    for cut in (free, full):
        assert cut.learning_rate / cut.batch == pytest.approx(0.4 / 256 / 5)


def test_seesaw_doubles_the_batch_and_divides_the_learning_rate_by_the_root_of_two():
    cut = ramps.seesaw(batch=256, learning_rate=1e-3)

    assert (cut.batch, cut.learning_rate) == (512, pytest.approx(1e-3 / math.sqrt(2)))


@given(batch=st.floats(1, 1e4), phi=st.floats(1, 1e4))
def test_a_constant_ramp_takes_what_a_constant_batch_takes(batch, phi):
    profile = [Stretch(10, phi), Stretch(20, 2 * phi)]

    found = ramps.outcome_of_ramp(profile, lambda examples: batch, num_parts=3)

    assert found.steps == pytest.approx(schedule.outcome(profile, [batch, batch]).steps)
    assert found.examples == pytest.approx(found.steps * batch)


def test_the_outcome_of_a_rising_ramp_agrees_with_the_steps_of_its_examples():
    """Two ways to the number of steps: along ideal steps, and ∫ dE / B in closed form."""
    ramp = LinearRamp(32, 1024, 50_000)

    found = ramps.outcome_of_ramp(PROFILE, ramp.batch)

    assert found.steps == pytest.approx(ramp.steps(found.examples), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stages([], examples_per_step=1, bounds=Bounds()), "profile must not be empty"),
        (lambda: Bounds(largest=0.5), "largest must hold one of multiple_of"),
        (lambda: Bounds(multiple_of=64, smallest=1, largest=32), "largest must hold one of multiple_of .* got 32"),
        (lambda: Bounds(multiple_of=8, smallest=100, largest=64), "largest must hold one of multiple_of .* got 64"),
        (lambda: Bounds(hysteresis=0.9), r"hysteresis must be at least 1, got 0.9: 1.4 costs at most 3 %"),
        (lambda: LinearRamp(0, 1, 1), "first must be positive"),
        (lambda: LinearRamp(1, 2, 3).batch(-1), "examples must not be negative, got -1: a run starts at 0"),
        (lambda: Doublings(8, (3.0, 1.0)), "at_examples must rise from 0"),
        (lambda: Doublings(8, (-1.0, 1.0)), "at_examples must rise from 0"),
        (lambda: ramps.seesaw(batch=8, learning_rate=1, divisor=0.5), "divisor must be at least 1, got 0.5"),
        (
            lambda: ramps.grow_instead_of_cutting(batch=8, learning_rate=1, divisor=2, largest_batch=4),
            "largest_batch must hold the present batch 8, got 4",
        ),
    ],
)
def test_a_ramp_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
