import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import schedule
from noisescale_core.theory.schedule import Bounds, Stretch, stages

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
    best = [schedule.scheduled_batch(noise_scale=part.noise_scale, examples_per_step=price) for part in PROFILE]
    exact = schedule.outcome(PROFILE, best).cost(price)

    found = stages(PROFILE, examples_per_step=price, bounds=Bounds())

    coarse = sum(price * stage.steps + stage.examples for stage in found)

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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stages([], examples_per_step=1, bounds=Bounds()), "profile must not be empty"),
        (lambda: Bounds(largest=0.5), "largest must hold one of multiple_of"),
        (lambda: Bounds(multiple_of=64, smallest=1, largest=32), "largest must hold one of multiple_of .* got 32"),
        (lambda: Bounds(multiple_of=8, smallest=100, largest=64), "largest must hold one of multiple_of .* got 64"),
        (lambda: Bounds(hysteresis=0.9), r"hysteresis must be at least 1, got 0.9: 1.4 costs at most 3 %"),
    ],
)
def test_stages_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
