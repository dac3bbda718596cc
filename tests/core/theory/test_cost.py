import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import cost, machines
from noisescale_core.theory.cost import Rates, StepTime
from noisescale_core.theory.machines import Spot


def test_a_budget_pays_for_the_hours_of_devices_and_of_what_is_paid_besides():
    rates = Rates(usd_per_device_hour=3.0, usd_per_hour_besides=9.0)

    assert cost.affordable_seconds(usd=42.0, num_devices=4, rates=rates) == pytest.approx(2 * 3600)


def simulated_stretch(conditions, useful_hours, seed):
    """Hours that a run takes, hour by hour of events: work is lost back to the last checkpoint."""
    chance = random.Random(seed)
    rate = conditions.interruptions_per_instance_hour * conditions.num_instances
    clock = saved = 0.0
    while saved < useful_hours:
        until = chance.expovariate(rate)
        needed = useful_hours - saved
        if until >= needed:
            return clock + needed
        saved += math.floor(until / conditions.checkpoint_hours) * conditions.checkpoint_hours
        clock += until + conditions.restart_hours
    return clock


def test_interruptions_stretch_a_run_as_simulated():
    conditions = Spot(
        price_share=0.3, interruptions_per_instance_hour=0.005, num_instances=8, restart_hours=0.5, checkpoint_hours=1.0
    )

    stretches = [simulated_stretch(conditions, 2000.5, seed) / 2000.5 for seed in range(100)]

    # restarts are taken as free of interruptions here: a second-order difference, (f n)² t_restart t_checkpoint
    error = statistics.stdev(stretches) / 10
    assert conditions.time_factor == pytest.approx(1.0417, abs=1e-4)
    assert statistics.fmean(stretches) == pytest.approx(conditions.time_factor, abs=5 * error + 0.001)
    assert error < 0.001


def test_spot_pays_until_its_break_even():
    limit = machines.break_even_interruptions(price_share=0.3, restart_hours=0.4, checkpoint_hours=3.0)

    def at(rate):
        return Spot(0.3, rate, 1, 0.4, 3.0)

    assert at(0.99 * limit).pays
    assert not at(1.01 * limit).pays
    assert at(limit).cost_share == pytest.approx(1)
    assert machines.break_even_interruptions(price_share=1.2, restart_hours=1, checkpoint_hours=1) == 0
    assert machines.break_even_interruptions(price_share=0.5, restart_hours=0, checkpoint_hours=0) == math.inf


@given(critical=st.floats(1, 1e6), batch=st.floats(1, 1e6), factor=st.floats(0.05, 3))
def test_less_compute_takes_the_time_of_the_batch_that_costs_exactly_that(critical, batch, factor):
    found = machines.with_less_compute(critical_batch=critical, batch=batch, compute_factor=factor)

    least = machines.least_compute_factor(critical_batch=critical, batch=batch)
    if found is None:
        assert factor <= least
    else:
        assert found.compute_factor == pytest.approx(factor, rel=1e-6)
        assert (found.time_factor >= 1) == (factor <= 1) or found.time_factor == pytest.approx(1)


def test_the_ends_of_what_devices_can_buy_are_those_of_the_trade_off():
    at = {"critical_batch": 900, "batch": 300}

    assert machines.greatest_speedup(**at) == pytest.approx(4)
    assert machines.least_compute_factor(**at) == pytest.approx(0.75)


def test_a_batch_keeps_so_many_devices_busy():
    assert machines.max_useful_devices(batch=1000, min_examples_per_device=8) == 125
    assert machines.max_useful_devices(batch=0.3, min_examples_per_device=0.1) == 3
    assert machines.max_useful_devices(batch=4, min_examples_per_device=8) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StepTime(-1, 1), "overhead_seconds must not be negative"),
        (lambda: Rates(-1), "usd_per_device_hour must not be negative, got -1: 0 where it is free"),
        (
            lambda: cost.affordable_seconds(usd=9, num_devices=1, rates=Rates(0)),
            "usd_per_hour must be positive and finite, got 0: a budget limits nothing where hours are free",
        ),
        (lambda: Spot(0.3, 1.0, 8, 0.5, 1.0), "interruptions_per_instance_hour must leave time to work, got 8 hours"),
        (lambda: Spot(0.3, 1.5, 1, 0.5, 1.0), "must leave time to work, got 1.5 hours lost in each"),
        (lambda: Spot(0, 1.0, 8, 0.5, 1.0), "price_share must be positive"),
        (lambda: machines.greatest_speedup(critical_batch=0, batch=1), "critical_batch must be .* an unresolved"),
    ],
)
def test_a_cost_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
