"""The path ratio against exact truth: random walks, straight lines, descent on quadratics, each term and the ratio."""

import math
import random

import pytest

from noisescale_core.errors import EstimationError
from noisescale_core.estimators.path import (
    SKETCH_SIZE,
    Path,
    at_half,
    path_ratio,
    push_since,
    sketch_error,
    walk_factor,
    without_lookahead,
)


def path_of(updates, momentum=0.0):
    """The path of these updates, each a list of coordinates, with its distance as it is."""
    total = [sum(column) for column in zip(*updates, strict=True)]
    return Path(
        num_updates=len(updates),
        sum_sq_norm=sum(x * x for update in updates for x in update),
        variance=0.0,
        sq_distance=sum(x * x for x in total),
        momentum=momentum,
    )


def random_walk(num_updates, momentum):
    """Updates in 800 directions, from the stationary state on, so that the first are as long as the last."""
    rng, updates = random.Random(3), []
    update = [rng.gauss(0, 1) / math.sqrt(1 - momentum * momentum) for _ in range(800)]
    for _ in range(num_updates):
        updates.append(update)
        update = [momentum * x + rng.gauss(0, 1) for x in update]
    return updates


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9, 0.95])
@pytest.mark.parametrize("num_updates", [1, 2, 3, 50, 2000])
def test_the_factor_of_momentum_is_the_exact_sum_over_all_pairs_of_updates(momentum, num_updates):
    pairs = num_updates + 2 * sum((num_updates - lag) * momentum**lag for lag in range(1, num_updates))

    assert walk_factor(momentum, num_updates) == pytest.approx(pairs / num_updates, rel=1e-9)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_random_walk_has_the_ratio_zero_whatever_the_momentum(momentum):
    ratio = path_ratio(path_of(random_walk(200, momentum), momentum))

    # |θ|² of 800 directions scatters by √(2/800) = 5 %
    assert ratio.value == pytest.approx(0, abs=5 * 0.05 / (2 * math.log(2)))


def test_nesterovs_random_walk_has_the_ratio_zero_with_the_momentum_that_stands_for_it():
    rng, size, momentum = random.Random(4), 800, 0.9
    buffer, updates = [0.0] * size, []
    for step in range(260):
        gradient = [rng.gauss(0, 1) for _ in range(size)]
        buffer = [momentum * b + g for b, g in zip(buffer, gradient, strict=True)]
        if step >= 60:
            updates.append([g + momentum * b for g, b in zip(gradient, buffer, strict=True)])

    ratio = path_ratio(path_of(updates, without_lookahead(momentum)))
    with_its_own = path_ratio(path_of(updates, momentum))

    assert ratio.value == pytest.approx(0, abs=5 * 0.05 / (2 * math.log(2)))
    assert with_its_own.value > 0.15


def test_updates_in_one_direction_get_as_far_as_can_be():
    ratio = path_ratio(path_of([[0.3, -0.4]] * 64))

    assert ratio.value == pytest.approx(-0.5 * math.log2(64))


def test_updates_that_take_each_other_back_get_nowhere():
    back_and_forth = path_of([[1.0], [-0.9]] * 32)

    assert path_ratio(back_and_forth).value > 1


@pytest.mark.parametrize("change", [{"sq_distance": 0.0}, {"sum_sq_norm": 0.0}, {"sum_sq_norm": math.inf},
                                    {"sq_distance": math.nan}, {"num_updates": 0}, {"variance": math.inf}])  # fmt: skip
def test_a_path_that_did_not_move_or_is_not_finite_has_no_ratio(change):
    assert path_ratio(Path(64, 1.0, 0.0, 1.0)._replace(**change)) is None


@pytest.mark.parametrize(("rate", "is_low"), [(0.02, True), (0.3, True), (1.9, False)])
def test_descent_on_a_quadratic_is_told_low_below_the_best_rate_and_high_beyond_the_edge(rate, is_low):
    """x ← (1 - rate) x without noise: the best rate is 1, and from 1 on x changes its side."""
    x, updates = 1.0, []
    for _ in range(20):
        updates.append([-rate * x])
        x -= rate * x

    ratio = path_ratio(path_of(updates)).value

    # Σ |u|² = rate² Σ (1 - rate)^2t and |θ_T - θ_0| = |1 - (1 - rate)^T| exactly
    left = (1 - rate) ** 20
    exact = rate**2 * (1 - left**2) / (1 - (1 - rate) ** 2) / (1 - left) ** 2
    assert ratio == pytest.approx(0.5 * math.log2(exact))
    assert (ratio < 0) is is_low


def test_the_ratio_rises_with_the_rate_of_noisy_descent_by_exact_expectations():
    """x ← (1 - ε) x + ε noise in 100 directions from 1: E|θ_T - θ_0|² and E Σ |u|² by recursion, no sampling."""

    def ratio_at(rate, noise=1.0, num_updates=200):
        mean, variance, total = 1.0, 0.0, 0.0
        for _ in range(num_updates):
            total += rate**2 * (mean**2 + variance + noise**2)
            mean, variance = (1 - rate) * mean, (1 - rate) ** 2 * variance + rate**2 * noise**2
        return path_ratio(Path(num_updates, total, 0.0, (1 - mean) ** 2 + variance)).value

    ratios = [ratio_at(2.0**-k) for k in range(9, 0, -1)]

    assert ratios == sorted(ratios)
    assert ratios[0] < -0.5
    assert ratios[-1] > 0.5


def test_the_stated_error_of_a_sketch_is_that_of_random_signs_in_as_many_buckets():
    rng, size, found = random.Random(5), 4 * SKETCH_SIZE, []
    vector = [rng.gauss(0, 1) for _ in range(size)]
    true = sum(x * x for x in vector)
    for _ in range(300):
        buckets = [0.0] * SKETCH_SIZE
        for place, x in enumerate(vector):
            buckets[place % SKETCH_SIZE] += x if rng.random() < 0.5 else -x
        found.append(sum(b * b for b in buckets) / true)

    mean = sum(found) / len(found)
    sd = math.sqrt(sum((one - mean) ** 2 for one in found) / (len(found) - 1))
    assert mean == pytest.approx(1, abs=5 * sketch_error() / math.sqrt(300))
    # each bucket holds four coordinates, so three quarters of the variance of many
    assert sd == pytest.approx(sketch_error() * math.sqrt(3 / 4), rel=0.2)


def test_the_interval_holds_the_error_of_the_sketch_and_of_the_updates_that_were_not_looked_at():
    exact, sampled = path_ratio(Path(64, 2.0, 0.0, 1.0)), path_ratio(Path(64, 2.0, 0.16, 1.0))

    assert exact.high - exact.low == pytest.approx(2 * 1.96 * 0.5 * sketch_error() / math.log(2), rel=1e-4)
    assert sampled.sd == pytest.approx(0.5 / math.log(2) * math.hypot(sketch_error(), 0.2))


@pytest.mark.parametrize("momentum", [-0.1, 1.0, 1.5])
def test_a_momentum_that_cannot_be_is_refused_by_its_value(momentum):
    with pytest.raises(EstimationError, match=f"momentum .* got {momentum}"):
        walk_factor(momentum, 10)


def test_a_path_without_an_update_is_refused():
    with pytest.raises(EstimationError, match="num_updates=0"):
        walk_factor(0.9, 0)


# ---- the push of the last half


def halves_of(updates, momentum=0.0):
    """The path at half of its updates, and after all of them."""
    return path_of(updates[: len(updates) // 2], momentum), path_of(updates, momentum)


def test_the_push_is_twice_the_sum_of_updates_along_the_path_over_that_of_their_squares():
    rng = random.Random(5)
    updates = [[rng.gauss(0.2, 1) for _ in range(3)] for _ in range(40)]
    half, now = halves_of(updates)

    along, place = 0.0, [sum(column) for column in zip(*updates[:20], strict=True)]
    for update in updates[20:]:
        along += sum(x * y for x, y in zip(update, place, strict=True))
        place = [x + y for x, y in zip(update, place, strict=True)]

    made = sum(x * x for update in updates[20:] for x in update)
    assert push_since(half, now).value == pytest.approx(2 * along / made)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_random_walk_neither_pushes_on_nor_back_whatever_the_momentum(momentum):
    # what momentum adds across the middle of the walk is a twentieth of the rest
    assert push_since(*halves_of(random_walk(400, momentum), momentum)).value == pytest.approx(0, abs=0.25)


def test_a_straight_line_pushes_on_and_a_walk_back_pushes_back():
    straight = push_since(*halves_of([[1.0]] * 40))
    back = push_since(*halves_of([[1.0]] * 20 + [[-0.5]] * 20))

    assert straight.value == pytest.approx(2 * sum(range(20, 40)) / 20)
    assert back.value < 0


def test_the_stated_error_of_a_push_is_that_of_the_sketches():
    """Distances by sketches of one and the same drawing, as the job has them."""
    rng, size, buckets, found = random.Random(6), 60, 64, []
    updates = [[rng.gauss(0, 1) for _ in range(size)] for _ in range(40)]
    half, now = halves_of(updates)
    places = [[sum(column) for column in zip(*updates[:end], strict=True)] for end in (20, 40)]
    for _ in range(400):
        bucket, sign = [rng.randrange(buckets) for _ in range(size)], [rng.choice((-1, 1)) for _ in range(size)]
        distances = []
        for place in places:
            sums = [0.0] * buckets
            for x, b, s in zip(place, bucket, sign, strict=True):
                sums[b] += s * x
            distances.append(sum(one * one for one in sums))
        found.append(push_since(half._replace(sq_distance=distances[0]), now._replace(sq_distance=distances[1])).value)
    mean = sum(found) / len(found)
    spread = math.sqrt(sum((one - mean) ** 2 for one in found) / len(found))

    stated = push_since(half, now).sd * math.sqrt(SKETCH_SIZE / buckets)
    assert spread == pytest.approx(stated, rel=0.25)


def test_updates_that_were_not_looked_at_make_a_push_less_sure():
    half, now = halves_of([[1.0, 0.5]] * 40)

    assert push_since(half, now._replace(variance=100.0)).sd > 2 * push_since(half, now).sd


@pytest.mark.parametrize(
    ("half", "now"),
    [
        (Path(10, 4.0, 0.0, 1.0), Path(20, 4.0, 0.0, 2.0)),
        (Path(10, 4.0, 0.0, 1.0), Path(20, math.inf, 0.0, 2.0)),
        (Path(10, 4.0, 0.0, 1.0), Path(20, 8.0, 0.0, math.nan)),
        (Path(10, 4.0, 0.0, 1.0), Path(20, 8.0, 0.0, -1.0)),
        (Path(10, 4.0, 0.0, 1.0, 1.0), Path(20, 8.0, 0.0, 2.0, 1.0)),
        (Path(10, 1e-300, 0.0, 1.0), Path(20, 2e-300, 1.0, 1e100)),
    ],
)
def test_of_a_path_that_went_nowhere_or_is_beyond_all_numbers_nobody_knows_the_push(half, now):
    assert push_since(half, now) is None


def test_half_of_a_path_lies_between_the_moments_that_are_known():
    moments = [Path(float(n), 2.0 * n, 0.5 * n, 3.0 * n, 0.9) for n in (40, 46, 52, 60)]

    assert at_half(moments, Path(100, 200.0, 50.0, 300.0, 0.9)) == pytest.approx((50, 100, 25, 150, 0.9, None, None))
    assert at_half(moments[:2], Path(90, 180.0, 45.0, 270.0, 0.9)) == pytest.approx(
        (45, 90, 22.5, 135, 0.9, None, None)
    )


@pytest.mark.parametrize("num_updates", [30, 60, 200])
def test_where_no_moment_is_near_nobody_knows_half_of_a_path(num_updates):
    moments = [Path(40.0, 80.0, 0.0, 120.0)]

    assert at_half(moments, Path(num_updates, 1.0, 0.0, 1.0)) is None
    assert at_half([], Path(num_updates, 1.0, 0.0, 1.0)) is None
