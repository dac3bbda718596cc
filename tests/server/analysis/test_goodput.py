import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import learning_rate
from noisescale_core.theory.trade_off import example_efficiency
from noisescale_server.analysis.planner.goodput import best_goodput, efficiency
from noisescale_server.analysis.planner.throughput import Placement, StepTimes, TimedStep, misfit

TIMES = StepTimes(
    compute_overhead=0.05,
    compute_per_example=0.002,
    node_overhead=0.01,
    node_per_device=0.001,
    network_overhead=0.06,
    network_per_device=0.004,
    overlap=2.0,
)


def test_the_efficiency_at_16_times_the_base_batch():
    """φ = 700, B0 = 64, k = 16 gives 0.4432, the AdaScale gain divided by k."""
    found = efficiency(batch=1024, base_batch=64, noise_scale=700)

    assert found == pytest.approx(0.4432, abs=1e-4)
    assert found == pytest.approx(learning_rate.gain(from_batch=64, to_batch=1024, noise_scale=700) / 16)


@given(batch=st.floats(1, 1e6), base=st.floats(1, 1e6), noise_scale=st.floats(1, 1e6))
def test_pollux_efficiency_is_a_ratio_of_example_efficiencies(batch, base, noise_scale):
    found = efficiency(batch=batch, base_batch=base, noise_scale=noise_scale)

    assert found == pytest.approx(example_efficiency(noise_scale, batch) / example_efficiency(noise_scale, base))


@pytest.mark.parametrize(
    ("placement", "network"),
    [(Placement(1), 0.0), (Placement(2), 0.01), (Placement(8), 0.016), (Placement(8, 2), 0.084)],
)
def test_a_step_takes_what_its_parts_take_and_overlap_hides(placement, network):
    compute = 0.05 + 0.002 * 32

    found = TIMES.step_seconds(32, placement, num_extra=3)

    assert TIMES.network_seconds(placement) == pytest.approx(network)
    assert found == pytest.approx(3 * compute + math.hypot(compute, network))
    assert TIMES.examples_per_second(32, placement, num_extra=3) == pytest.approx(
        placement.num_devices * 32 * 4 / found
    )


@given(overlap=st.floats(1, 10), examples=st.floats(1, 1e4))
def test_a_step_is_never_shorter_than_its_longer_part_nor_longer_than_both(overlap, examples):
    times = StepTimes(0.0, 1e-9, node_overhead=1e-6, overlap=overlap)
    parts = times.accumulation_seconds(examples), times.network_seconds(Placement(2))

    found = times.step_seconds(examples, Placement(2))

    assert max(parts) * (1 - 1e-12) <= found <= sum(parts) * (1 + 1e-12)


@pytest.mark.parametrize("may_accumulate", [True, False])
@pytest.mark.parametrize("num_devices", [1, 3, 8])
@pytest.mark.parametrize("noise_scale", [50.0, 700.0, 1e5])
def test_the_search_comes_close_to_every_batch_there_is(num_devices, noise_scale, may_accumulate):
    placement = Placement(num_devices)

    found = best_goodput(
        TIMES,
        placement,
        base_batch=24,
        noise_scale=noise_scale,
        max_batch=3000,
        max_micro_batch=100,
        may_accumulate=may_accumulate,
    )

    everything = [
        TIMES.examples_per_second(m, placement, num_extra=s)
        * (noise_scale + 24)
        / (noise_scale + num_devices * m * (s + 1))
        for m in range(1, 101)
        for s in range(40 if may_accumulate else 1)
        if 24 <= num_devices * m * (s + 1) <= 3000
    ]
    assert found.goodput <= max(everything) * (1 + 1e-9)
    assert found.goodput >= 0.98 * max(everything)
    assert found.micro_batch <= 100
    assert found.batch == num_devices * found.micro_batch * (found.num_extra + 1)


def test_on_one_device_without_accumulation_goodput_peaks_at_the_fastest_batch():
    """Progress per second is largest where S (α + β B) is least: √(α φ / β)."""
    times = StepTimes(compute_overhead=0.5, compute_per_example=0.001)

    found = best_goodput(times, Placement(1), base_batch=1, noise_scale=800, max_batch=100_000, max_micro_batch=100_000)

    assert found.batch == pytest.approx(math.sqrt(0.5 * 800 / 0.001), rel=0.15)


def test_a_batch_that_divides_evenly_is_not_rounded_up():
    found = best_goodput(
        StepTimes(1e-4, 0.01), Placement(4), base_batch=64, noise_scale=1e-3, max_batch=4096, max_micro_batch=100
    )

    assert (found.batch, found.micro_batch, found.num_extra) == (64, 16, 0)


@given(base=st.integers(8, 500), growth=st.floats(1.2, 20), num_devices=st.integers(1, 8), max_micro=st.integers(1, 64))
def test_the_search_stays_between_the_base_batch_and_the_largest(base, growth, num_devices, max_micro):
    slow_steps = StepTimes(compute_overhead=5.0, compute_per_example=1e-4)
    limits = {"base_batch": base, "max_batch": base * growth + 512, "max_micro_batch": max_micro}

    found = best_goodput(slow_steps, Placement(num_devices), noise_scale=1e3, **limits)

    assert base <= found.batch <= limits["max_batch"]
    assert found.micro_batch <= max_micro


def test_the_largest_batch_is_tried():
    found = best_goodput(
        StepTimes(5.0, 1e-4), Placement(1), base_batch=24, noise_scale=1e9, max_batch=3000, max_micro_batch=3000
    )

    assert found.batch == 3000


def test_where_noise_dominates_every_example_counts_alike():
    assert efficiency(batch=1e6, base_batch=1, noise_scale=math.inf) == 1


def steps_of(times):
    places = [Placement(1), Placement(2), Placement(4), Placement(8, 2), Placement(16, 4)]
    return [
        TimedStep(m, place, times.accumulation_seconds(m), times.step_seconds(m, place))
        for place in places
        for m in (8, 32, 128)
    ]


def test_the_true_constants_fit_best_up_to_their_penalties():
    steps = steps_of(TIMES)
    penalty = 1e-3 * (2.0 - 1) ** 2 + 1e-2 * ((0.001 / 0.01) ** 2 + (0.004 / 0.06) ** 2)

    strict = StepTimes(0.05, 0.002, overlap=4.0)
    assert misfit(strict, steps_of(strict)) == pytest.approx(9e-3)
    assert misfit(TIMES, steps) == pytest.approx(penalty)
    for wrong in ({"compute_per_example": 0.003}, {"network_overhead": 0.12}, {"overlap": 1.0}):
        fields = {name: getattr(TIMES, name) for name in TIMES.__slots__} | wrong
        assert misfit(StepTimes(**fields), steps) > penalty


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Placement(2, 3), "num_nodes must lie between 1 and num_devices, got 3 and 2"),
        (lambda: StepTimes(0.1, 0.0), "compute_per_example must be positive and finite, got 0: fit it"),
        (lambda: StepTimes(0.1, 0.1, overlap=0.5), "overlap must be between 1 and 10, got 0.5: 1 means none"),
        (lambda: misfit(TIMES, []), "steps must not be empty: time a few steps first"),
        (lambda: efficiency(batch=0, base_batch=1, noise_scale=1), "batch must be positive"),
        (
            lambda: best_goodput(TIMES, Placement(8), base_batch=64, noise_scale=9, max_batch=32, max_micro_batch=8),
            "max_batch must be at least base_batch, got 32 and 64",
        ),
        (
            lambda: best_goodput(
                TIMES, Placement(2), base_batch=64, noise_scale=9, max_batch=99, max_micro_batch=8, may_accumulate=False
            ),
            "max_batch must leave room for whole micro-batches of at most 8 on 2 devices, got 99: raise it",
        ),
    ],
)
def test_a_step_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
