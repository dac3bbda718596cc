"""Streams with Gaussian noise in d equal directions, whose noise scale is known, seen by K small batches a step."""

import math
import random
import sys
from statistics import median

import pytest

from noisescale_core.estimators import belief as of_grid
from noisescale_core.estimators.belief import LARGEST, NEGLIGIBLE, SMALLEST, SPACING, Belief, belief
from noisescale_core.estimators.looks import Look, Looks
from noisescale_core.estimators.noise_scale import Terms

BATCH = 64.0
DIRECTIONS, GROUPS = 20, 8


def stream(seed, noise_scale, *, steps, square=lambda step: 1.0, batch=BATCH, scale=1.0, directions=DIRECTIONS):
    """Looks of a run in which tr Σ stands still and is the noise scale where |G|², the square, is 1; both × scale."""
    source, looks = random.Random(seed), Looks()
    freedom, variance = GROUPS - 1, noise_scale / batch / directions
    for step in range(steps):
        along = math.sqrt(square(step)) + source.gauss(0, math.sqrt(variance))
        big = along**2 + variance * source.gammavariate((directions - 1) / 2, 2)
        noise = variance / freedom * source.gammavariate(directions * freedom / 2, 2)
        looks.add(step, Terms(noise * batch * scale, (big - noise) * scale), batch, None)
    return looks.so_far()


def clear_look(noise_scale=640.0, updates=16.0, batch=BATCH):
    """A look whose means are exact, with the spread of noise in 20 directions; |G|² is 1."""
    noise = noise_scale / batch
    variance = (2 * noise**2 + 4 * noise) / DIRECTIONS
    return Look(
        num_updates=updates,
        trace_cov=updates * noise_scale,
        grad_sq_norm=updates,
        grad_sq_norm_sq=updates + (updates - 1) * variance,
        examples=updates * batch,
        num_batches=updates,
    )


def ends(found):
    return found.quantile(0.025), found.quantile(0.975)


def width(found):
    low, high = ends(found)
    return math.log(high / low)


@pytest.mark.parametrize("over_batch", [0.1, 1.0, 10.0])
def test_an_interval_of_95_per_cent_holds_the_noise_scale_of_nine_streams_in_ten(over_batch):
    truth = over_batch * BATCH

    found = [belief(stream(seed, truth, steps=256)) for seed in range(100)]

    held = sum(low <= truth <= high for low, high in map(ends, found))
    assert held >= 90
    assert median(one.quantile(0.5) for one in found) == pytest.approx(truth, rel=0.25)


@pytest.mark.parametrize("shown", [-2.0, 0.0, 1.0, 5.0], ids="|G|² of {}".format)
def test_one_look_says_what_students_t_says_of_its_mean(shown):
    updates, noise = 32.0, 10.0
    expected = 2 * noise**2 + 4 * noise * max(0.0, shown)
    look = clear_look(updates=updates)._replace(
        grad_sq_norm=updates * shown, grad_sq_norm_sq=updates * shown**2 + (updates - 1) * expected / DIRECTIONS
    )

    found = belief([look])

    freedom = 6 + updates - 1

    def log_likelihood(phi):
        square = noise * BATCH / phi
        # of the mean of noise in 20 directions, and a tenth for a noise scale that does not stand still
        variance = (2 * noise**2 + 4 * noise * square) / DIRECTIONS / updates + (0.1 * square) ** 2
        far = shown - square
        return -(freedom + 1) / 2 * math.log1p(far**2 / (freedom * variance)) - math.log(variance) / 2

    reference = math.exp(max(found.points(), key=lambda point: point[1])[0])
    top = max(found.weights)
    for log, weight in found.points():
        if weight > 1e-6 * top:
            expected = log_likelihood(math.exp(log)) - log_likelihood(reference)
            assert math.log(weight / top) == pytest.approx(expected, abs=1e-6)


def test_more_steps_say_more():
    widths = [width(belief(stream(5, 640.0, steps=steps))) for steps in (16, 128, 1024)]

    assert widths[0] > 1.5 * widths[1] > 2 * widths[2]


def test_no_number_of_steps_says_a_noise_scale_to_better_than_it_stands_still():
    assert width(belief([clear_look(updates=1e6)])) > 2 * 0.1


def test_pure_noise_has_a_lower_bound_and_no_upper_one():
    for seed in range(10):
        found = belief(stream(seed, 640.0, steps=256, square=lambda step: 0.0))

        assert found.quantile(0.05) > BATCH
        assert found.quantile(0.975) > LARGEST * BATCH / 10
        assert found.start + found.spacing * (len(found.weights) - 1) == pytest.approx(
            math.log(LARGEST * BATCH), abs=0.1
        )


def test_a_belief_is_bounded_once_a_gradient_has_shown():
    assert belief(stream(5, 640.0, steps=256)).is_bounded
    assert not belief(stream(5, 640.0, steps=256, square=lambda step: 0.0)).is_bounded
    assert Belief.of_interval(1000.0, 200.0, 5_000.0, 0.95).is_bounded
    assert not Belief.of_interval(1000.0, 150.0, 6_000.0, 0.95).is_bounded


def test_looks_that_show_no_gradient_raise_the_lower_bound_with_every_one():
    # |G|² comes out at a little below 0, so no window of any length has a value
    none_shown = clear_look()._replace(grad_sq_norm=-1.0)

    bounds = [belief([none_shown] * count).quantile(0.05) for count in (1, 4, 16)]

    assert BATCH < bounds[0] < bounds[1] < bounds[2]


def test_looks_that_show_no_gradient_narrow_what_a_clear_one_says():
    none_shown = clear_look()._replace(grad_sq_norm=0.0)

    alone, followed = belief([clear_look()]), belief([clear_look(), none_shown])

    assert followed.quantile(0.025) > alone.quantile(0.025)
    assert followed.quantile(0.5) > 1.2 * alone.quantile(0.5)


@pytest.mark.parametrize(("updates", "is_said"), [(0, False), (7, False), (8, True)])
def test_nothing_is_said_before_eight_updates(updates, is_said):
    assert (belief(stream(1, 64.0, steps=updates)) is not None) == is_said


def test_updates_of_all_looks_count_together_towards_the_eight():
    assert belief([clear_look(updates=4.0), clear_look(updates=3.0)]) is None
    assert belief([clear_look(updates=4.0), clear_look(updates=4.0)]) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"trace_cov": 0.0},
        {"trace_cov": -1.0},
        {"trace_cov": math.nan},
        {"trace_cov": math.inf},
        {"grad_sq_norm": math.nan},
        {"grad_sq_norm": -math.inf},
        {"trace_cov": 1e-10},
        {"num_updates": 0.0},
        {"examples": 0.0},
        {"num_batches": 0.0},
    ],
)
def test_a_look_that_cannot_be_used_says_nothing_and_changes_nothing(changes):
    looks, useless = stream(2, 640.0, steps=64), clear_look()._replace(**changes)

    assert belief([*looks[:3], useless, *looks[3:]]) == belief(looks)
    assert belief([useless, useless]) is None


@pytest.mark.parametrize("scale", [2.0**-80, 2.0**-20, 2.0**40, 2.0**80])
def test_the_scale_of_the_gradient_changes_nothing(scale):
    assert belief(stream(3, 640.0, steps=100, scale=scale)) == belief(stream(3, 640.0, steps=100))


def test_counting_in_another_unit_moves_the_belief_by_that_unit():
    plain, tokens = (belief(stream(4, 640.0 * unit, steps=256, batch=BATCH * unit)) for unit in (1.0, 512.0))

    # by half of the grid's spacing at most
    for share in (0.025, 0.5, 0.975):
        assert tokens.quantile(share) == pytest.approx(512 * plain.quantile(share), rel=0.05)


def test_a_noise_scale_that_grows_is_followed():
    def square(step):
        return (1 + step / 20) ** -0.5

    truth = 64.0 / square(1024)
    found = [belief(stream(seed, 64.0, steps=1024, square=square)) for seed in range(20)]

    # the mean of |G|² over the run is twice that of now
    assert median(one.quantile(0.5) for one in found) == pytest.approx(truth, rel=0.2)
    assert sum(low <= truth <= high for low, high in map(ends, found)) >= 18


def test_a_noise_scale_that_jumps_is_believed_after_as_many_steps_again():
    def square(step):
        return 1.0 if step < 256 else 1 / 8

    before, soon, later = (belief(stream(6, 64.0, steps=steps, square=square)) for steps in (256, 257, 512))

    assert before.quantile(0.5) == pytest.approx(64.0, rel=0.2)
    assert soon.quantile(0.5) == pytest.approx(before.quantile(0.5), rel=0.1)
    assert later.quantile(0.5) == pytest.approx(512.0, rel=0.3)


def test_fewer_directions_of_the_noise_say_less():
    assert width(belief(stream(7, 640.0, steps=256, directions=3))) > 1.3 * width(belief(stream(7, 640.0, steps=256)))


@pytest.mark.parametrize("steps_before", [1e3, 1e5, 1e7])
def test_the_first_update_of_a_look_hardly_moves_the_belief_of_a_long_run(steps_before):
    before = clear_look(updates=steps_before)

    found = belief([before, clear_look(updates=1.0)])

    assert found.quantile(0.5) == pytest.approx(belief([before]).quantile(0.5), rel=0.05)


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e150, 1e300])
def test_no_finite_sums_are_too_absurd(size):
    found = belief([Look(8.0, size, size / 100, size * size, size * size, size * size, 512.0, 8.0)] * 2)

    assert found is None or math.fsum(found.weights) == pytest.approx(1)


def test_weights_are_probabilities_on_a_grid():
    found = belief(stream(8, 640.0, steps=64))

    assert math.fsum(found.weights) == pytest.approx(1)
    assert min(found.weights) > 0
    logs = [log for log, _ in found.points()]
    assert logs[0] >= math.log(SMALLEST)
    assert [weight for _, weight in found.points()] == list(found.weights)
    assert logs[-1] - logs[0] == pytest.approx(found.spacing * (len(logs) - 1))


def test_quantiles_rise_with_their_share_and_halve_the_weight_at_the_median():
    found = Belief(0.0, 1.0, (0.25, 0.25, 0.25, 0.25))

    assert [math.log(found.quantile(share)) for share in (0.0, 0.25, 0.5, 0.625, 1.0)] == pytest.approx(
        [-0.5, 0.5, 1.5, 2.0, 3.5]
    )


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (1000.0, 900.0, 1100.0),
        (1000.0, 800.0, 1300.0),
        (1000.0, 999.999, 1000.001),
        (1000.0, 700.0, 3000.0),
        (1000.0, 500.0, 20_000.0),
        (1000.0, 200.0, 1100.0),
        (3e-6, 1e-6, 5e-6),
    ],
)
def test_a_belief_of_an_interval_has_its_median_and_its_ends(value, low, high):
    found = Belief.of_interval(value, low, high, 0.95)

    assert [found.quantile(0.5), *ends(found)] == pytest.approx([value, low, high], rel=0.05)
    assert math.fsum(found.weights) == pytest.approx(1)


def test_a_belief_of_an_interval_of_another_level_has_its_ends_at_that_level():
    found = Belief.of_interval(1000.0, 500.0, 2000.0, 0.5)

    assert [found.quantile(0.25), found.quantile(0.75)] == pytest.approx([500, 2000], rel=0.02)


def test_an_open_lower_end_is_a_wide_one():
    found = Belief.of_interval(1000.0, 0.0, 5000.0, 0.95)

    assert found.quantile(0.5) == pytest.approx(1000, rel=0.05)
    assert found.quantile(0.025) == pytest.approx(1000 * math.exp(-3.0 * 1.96), rel=0.1)


def test_a_value_without_an_error_is_one_point():
    assert Belief.of_interval(1000.0, 1000.0, 1000.0, 0.95).weights == (1.0,)


@pytest.mark.parametrize("spacing", [0.03, 0.05, 0.1, 0.2, 0.77])
def test_another_grid_keeps_total_weight_and_mean(spacing):
    plain = belief(stream(9, 640.0, steps=64))

    other = plain.resampled(spacing)

    def mean(found):
        return math.fsum(log * weight for log, weight in found.points())

    assert other.spacing == spacing
    assert math.fsum(other.weights) == pytest.approx(1)
    assert mean(other) == pytest.approx(mean(plain))


def test_weights_so_small_that_they_say_nothing_are_left_out():
    found = Belief.of_logarithms(0.0, 0.5, [-math.inf, -50.0, -1.0, 0.0, -1000.0])

    assert (found.start, len(found.weights)) == (1.0, 2)
    assert found.weights == pytest.approx((1 / (1 + math.e), math.e / (1 + math.e)))


@pytest.mark.parametrize("log_sd", [0.002, 0.05, 0.14, 0.6, 2.0])
@pytest.mark.parametrize(("low", "num"), [(0, 1), (0, 30), (70, 12), (150, 22), (0, 172)])
def test_a_drift_gives_each_place_what_all_others_give_it_to_the_last_bit(low: int, num: int, log_sd: float) -> None:
    source = random.Random(num)
    weights = [max(source.random() ** 8, NEGLIGIBLE) for _ in range(num)]

    start, blurred = of_grid._blurred(low, weights, log_sd)

    width = log_sd / SPACING
    reach = max(1, math.ceil(4 * width))
    places = range(max(0, low - reach), min(of_grid._COUNT, low + num + reach))
    expected = []
    for place in places:
        total = 0.0
        for other, weight in enumerate(weights, start=low):
            if abs(place - other) <= reach:
                total += math.exp(-0.5 * ((place - other) / width) ** 2) * weight
        expected.append(max(total, NEGLIGIBLE * max(weights)))
    assert start == places[0]
    # sum() of Python 3.12 on rounds once
    assert blurred == pytest.approx(expected, rel=1e-14)
    if sys.version_info < (3, 12):
        assert blurred == expected
