import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory.cost import Rates
from noisescale_core.theory.intervals import estimate_from_interval
from noisescale_core.theory.trade_off import TradeOff
from noisescale_core.theory.what_if import Hardware, RestOfPlan, what_if

RATES = Rates(usd_per_device_hour=2.0, usd_per_hour_besides=5.0, kilowatts_per_device=0.7)


@given(
    steps=st.floats(1, 1e6),
    now=st.floats(1, 1e5),
    then=st.floats(1, 1e5),
    critical=st.floats(1, 1e6),
    width=st.floats(1, 20),
)
def test_a_what_if_is_the_run_of_the_trade_off_at_the_value_and_at_both_ends(steps, now, then, critical, width):
    estimate = estimate_from_interval(critical, low=critical / width, high=critical * width)
    hardware = Hardware(step_seconds=1.5, num_devices=8, rates=RATES)

    found = what_if(RestOfPlan(steps, now), batch=then, critical_batch=estimate, hardware=hardware)

    def run(critical_batch):
        of_plan = TradeOff.from_run(steps=steps, batch=now, critical_batch=critical_batch, target="the plan's")
        hours = of_plan.steps(then) * 1.5 / 3600
        usd = hours * (8 * RATES.usd_per_device_hour + RATES.usd_per_hour_besides)
        return (
            of_plan.steps(then),
            of_plan.examples(then),
            hours,
            8 * hours,
            usd,
            8 * hours * RATES.kilowatts_per_device,
        )

    value, ends = run(critical), (run(critical / width), run(critical * width))
    carried = (found.steps, found.examples, found.hours, found.device_hours, found.usd, found.kilowatt_hours)
    for place, one in enumerate(carried):
        assert one.both.value == pytest.approx(value[place])
        assert one.both.low == pytest.approx(min(end[place] for end in ends))
        assert one.both.high == pytest.approx(max(end[place] for end in ends))


def test_statistical_and_model_error_of_a_prediction_stay_apart():
    estimate = estimate_from_interval(1000, low=900, high=1100, model_log_sd=2.0)

    steps = what_if(RestOfPlan(1e4, 100), batch=1000, critical_batch=estimate).steps

    assert steps.statistical.value == steps.model.value == steps.both.value
    assert steps.both.low < steps.model.low < steps.statistical.low < steps.both.value
    assert steps.statistical.low == pytest.approx(1e4 * 2.1 / 12)


def test_a_noise_scale_bounded_on_one_side_gives_a_prediction_bounded_by_perfect_scaling():
    estimate = estimate_from_interval(1000, low=500, high=None)

    found = what_if(RestOfPlan(1e4, 100), batch=1000, critical_batch=estimate, hardware=Hardware(1.0, 1, Rates(0.0)))

    assert found.steps.both.low == pytest.approx(1000)
    assert found.steps.both.high == pytest.approx(1e4 * 1.5 / 6)
    assert found.usd.both.high == 0


def test_without_hardware_there_are_steps_and_examples_alone():
    found = what_if(RestOfPlan(1e4, 100), batch=100, critical_batch=estimate_from_interval(9, low=1, high=math.inf))

    assert found.steps.both.low == found.steps.both.high == 1e4
    assert found.hours is found.usd is found.kilowatt_hours is None


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: RestOfPlan(0, 1), "steps must be positive and finite, got 0: a plan that is done"),
        (lambda: Hardware(0, 1), "step_seconds must be positive"),
        (lambda: Hardware(1, 0), "num_devices must be positive"),
        (
            lambda: what_if(RestOfPlan(1, 1), batch=0, critical_batch=estimate_from_interval(9, low=1, high=10)),
            "batch must be positive and finite, got 0",
        ),
    ],
)
def test_a_what_if_without_meaning_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
