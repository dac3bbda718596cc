import json
import math
import random
import statistics
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory import cost, parallelism, spot
from noisescale_core.theory.cost import Rates, StepTime
from noisescale_core.theory.spot import Spot
from noisescale_core.theory.trade_off import TradeOff

RUN = TradeOff(min_steps=1000, min_examples=400_000, target="loss 2.5")


def published(quantity):
    values = json.loads(resources.files("noisescale_server").joinpath("data/reference_values.json").read_text())
    return [entry["value"] for entry in values["values"] if entry["quantity"] == quantity]


def test_a_run_of_four_devices_by_hand():
    """400 examples at 2 s a step: 2000 steps, 4000 s, 4.444 device-hours."""
    rates = Rates(usd_per_device_hour=3.0, usd_per_hour_besides=9.0, kilowatts_per_device=0.7)

    found = cost.cost_of_run(RUN, batch=400, step_seconds=2.0, num_devices=4, rates=rates)

    assert (found.steps, found.examples, found.seconds) == (2000, 800_000, 4000)
    assert found.device_hours == pytest.approx(4000 / 3600 * 4)
    assert found.usd == pytest.approx(4000 / 3600 * (4 * 3 + 9))
    assert found.kilowatt_hours == pytest.approx(4000 / 3600 * 4 * 0.7)


def test_without_rates_there_is_no_money_and_without_power_no_energy():
    plain = cost.cost_of_run(RUN, batch=400, step_seconds=2.0, num_devices=4)
    priced = cost.cost_of_run(RUN, batch=400, step_seconds=2.0, num_devices=4, rates=Rates(1.0))

    assert plain.usd is plain.kilowatt_hours is priced.kilowatt_hours is None


@given(overhead=st.floats(1e-3, 10), per_example=st.floats(1e-6, 1))
def test_two_timed_steps_give_the_step_time_and_the_fastest_batch_is_the_fastest(overhead, per_example):
    true = StepTime(overhead, per_example)
    found = StepTime.from_two(small=8, small_seconds=true.seconds(8), big=8e4, big_seconds=true.seconds(8e4))
    best = true.fastest_batch(RUN.critical_batch)

    def seconds(batch):
        return cost.cost_of_run(RUN, batch=batch, step_seconds=true.seconds(batch), num_devices=1).seconds

    times = [seconds(best * 10 ** (i / 20)) for i in range(-40, 41)]
    assert times.index(min(times)) == 40
    assert found.seconds(1000) == pytest.approx(true.seconds(1000), rel=1e-6)


def test_a_budget_pays_for_the_run_that_costs_it():
    """Fixed devices: the seconds of that run. Devices added with the batch, 8 examples each: its examples."""
    rates = Rates(usd_per_device_hour=3.0, usd_per_hour_besides=9.0)
    fixed = cost.cost_of_run(RUN, batch=400, step_seconds=2.0, num_devices=4, rates=rates)
    added = cost.cost_of_run(RUN, batch=400, step_seconds=2.0, num_devices=50, rates=Rates(3.0))

    seconds = cost.affordable_seconds(usd=fixed.usd, num_devices=4, rates=rates)
    examples = cost.affordable_examples(usd=added.usd, usd_per_device_hour=3.0, examples_per_device_second=8 / 2.0)

    assert seconds == pytest.approx(fixed.seconds)
    assert examples == pytest.approx(added.examples)


def test_dawnbench_entries_cost_their_hours_times_their_rate():
    """Published hours and hourly prices against published dollars; 809 times faster, 79 times cheaper."""
    entries = published("time_and_cost_to_target")
    [best] = published("dawnbench_improvement")

    for entry in entries:
        seconds = 3600 * entry["hours"]
        run = cost.cost_of_run(
            TradeOff(1.0, 1.0, "93 % top-5"),
            batch=1e12,
            step_seconds=seconds,
            num_devices=1,
            rates=Rates(entry["usd_per_hour"]),
        )
        assert run.usd == pytest.approx(entry["usd_on_demand"], abs=0.006)
    assert cost.improvement(before=243.9995, after=0.301439) == pytest.approx(best["time_x"], rel=1e-6)
    assert cost.improvement(before=1112.64, after=14) == pytest.approx(best["cost_x_vs_$14"], rel=1e-6)
    assert [round(e["usd_spot_quoted"] / e["usd_on_demand"], 3) for e in entries if e.get("usd_spot_quoted")] == [
        e["spot_ratio"] for e in entries if e.get("spot_ratio")
    ]


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
    assert conditions.stretch == pytest.approx(1.0417, abs=1e-4)
    assert statistics.fmean(stretches) == pytest.approx(conditions.stretch, abs=5 * error + 0.001)
    assert error < 0.001


def test_spot_pays_until_its_break_even():
    limit = spot.break_even_interruptions(price_share=0.3, restart_hours=0.4, checkpoint_hours=3.0)

    def at(rate):
        return Spot(0.3, rate, 1, 0.4, 3.0)

    assert at(0.99 * limit).pays
    assert not at(1.01 * limit).pays
    assert at(limit).cost_share == pytest.approx(1)
    assert spot.break_even_interruptions(price_share=1.2, restart_hours=1, checkpoint_hours=1) == 0
    assert spot.break_even_interruptions(price_share=0.5, restart_hours=0, checkpoint_hours=0) == math.inf


@given(critical=st.floats(1, 1e6), batch=st.floats(1, 1e6), factor=st.floats(0.01, 100))
def test_more_devices_buy_what_the_trade_off_says(critical, batch, factor):
    run = TradeOff(1.0, critical, "loss 2.5")

    found = parallelism.with_more_devices(critical_batch=critical, batch=batch, factor=factor)

    assert found.time_factor == pytest.approx(run.steps(factor * batch) / run.steps(batch))
    assert found.compute_factor == pytest.approx(run.examples(factor * batch) / run.examples(batch))
    assert 1 / found.time_factor <= parallelism.greatest_speedup(critical_batch=critical, batch=batch) * (1 + 1e-9)


@given(critical=st.floats(1, 1e6), batch=st.floats(1, 1e6), factor=st.floats(0.05, 3))
def test_less_compute_takes_the_time_of_the_batch_that_costs_exactly_that(critical, batch, factor):
    found = parallelism.with_less_compute(critical_batch=critical, batch=batch, compute_factor=factor)

    least = parallelism.least_compute_factor(critical_batch=critical, batch=batch)
    if found is None:
        assert factor <= least
    else:
        assert found.compute_factor == pytest.approx(factor, rel=1e-6)
        assert (found.time_factor >= 1) == (factor <= 1) or found.time_factor == pytest.approx(1)


def test_the_ends_of_what_devices_can_buy_are_those_of_the_trade_off():
    at = {"critical_batch": 900, "batch": 300}

    assert parallelism.greatest_speedup(**at) == pytest.approx(4)
    assert 1 / parallelism.with_more_devices(**at, factor=1e9).time_factor == pytest.approx(4)
    assert parallelism.least_compute_factor(**at) == pytest.approx(0.75)
    assert parallelism.with_more_devices(**at, factor=1e-9).compute_factor == pytest.approx(0.75)


def test_a_batch_keeps_so_many_devices_busy():
    assert parallelism.max_useful_devices(batch=1000, min_examples_per_device=8) == 125
    assert parallelism.max_useful_devices(batch=0.3, min_examples_per_device=0.1) == 3
    assert parallelism.max_useful_devices(batch=4, min_examples_per_device=8) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StepTime(-1, 1), "overhead_seconds must not be negative"),
        (
            lambda: StepTime.from_two(small=8, small_seconds=1, big=16, big_seconds=3),
            "big_seconds must exceed small_seconds by no more than in proportion, got 3 and 1: average",
        ),
        (lambda: StepTime.from_two(small=8, small_seconds=1, big=8, big_seconds=1), "big must exceed small, got 8 and"),
        (lambda: Rates(-1), "usd_per_device_hour must not be negative, got -1: 0 where it is free"),
        (lambda: cost.cost_of_run(RUN, batch=8, step_seconds=0, num_devices=1), "step_seconds must be positive"),
        (
            lambda: cost.affordable_seconds(usd=9, num_devices=1, rates=Rates(0)),
            "usd_per_hour must be positive and finite, got 0: a budget limits nothing where hours are free",
        ),
        (
            lambda: cost.affordable_examples(usd=0, usd_per_device_hour=1, examples_per_device_second=1),
            "usd must be positive and finite, got 0: leave the budget out",
        ),
        (lambda: Spot(0.3, 1.0, 8, 0.5, 1.0), "interruptions_per_instance_hour must leave time to work, got 8 hours"),
        (lambda: Spot(0.3, 1.5, 1, 0.5, 1.0), "must leave time to work, got 1.5 hours lost in each"),
        (lambda: Spot(0, 1.0, 8, 0.5, 1.0), "price_share must be positive"),
        (
            lambda: parallelism.with_more_devices(critical_batch=9, batch=1, factor=0),
            "factor must be .* got 0: 2 doubles",
        ),
        (lambda: parallelism.greatest_speedup(critical_batch=0, batch=1), "critical_batch must be .* an unresolved"),
    ],
)
def test_a_cost_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
