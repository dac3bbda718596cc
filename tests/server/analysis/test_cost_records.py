"""Records, Pareto front, improvement and decomposition: against brute force, planted truth, the published."""

import math
import random
from dataclasses import replace
from datetime import date, timedelta

import pytest

from noisescale_server.analysis.cost import trainings
from noisescale_server.analysis.cost.decomposition import decompose, decompose_line, device_ratios
from noisescale_server.analysis.cost.records import (
    hours,
    improvement,
    pareto_front,
    record_line,
    same_hardware,
    until,
    usd,
    without_price,
)
from noisescale_server.analysis.cost.trainings import Training, published, submissions

FIRST = date(2017, 1, 1)


def made(key: int = 0, *, day: int = 0, taken: float = 1.0, price: float | None = 1.0, **changes: object) -> Training:
    return Training(
        key=str(key), name=f"training {key}", origin="own", day=FIRST + timedelta(days=day), hours=taken, usd=price,
        price_said="made up", **changes,  # type: ignore[arg-type]
    )  # fmt: skip


def crowd(seed: int) -> list[Training]:
    rng = random.Random(seed)
    return [
        made(key, day=rng.randrange(20), taken=rng.randrange(1, 12), price=rng.choice([None, *range(1, 9)]))
        for key in range(40)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_the_front_holds_exactly_those_that_nobody_beats_in_both(seed: int) -> None:
    priced = [one for one in crowd(seed) if one.usd is not None]
    unbeaten = {
        one.key
        for one in priced
        if not any(
            other.hours <= one.hours and other.usd <= one.usd and (other.hours, other.usd) != (one.hours, one.usd)
            for other in priced
        )
    }

    front = pareto_front(crowd(seed))

    assert {one.key for one in front} == unbeaten
    assert [one.hours for one in front] == sorted(one.hours for one in front)


@pytest.mark.parametrize("seed", range(5))
def test_a_record_beats_every_day_before_it(seed: int) -> None:
    everybody = crowd(seed)

    line = record_line(everybody)

    for day in {one.day for one in everybody}:
        before = min((one.hours for one in everybody if one.day < day), default=math.inf)
        best = min(one.hours for one in everybody if one.day == day)
        of_that_day = [one for one in line if one.training.day == day]
        assert [one.value for one in of_that_day] == ([best] if best < before else [])
    assert math.prod(one.of_previous for one in line) == pytest.approx(line[-1].of_baseline)


def test_all_69_submissions_are_there_each_with_its_hours_and_devices() -> None:
    found = submissions()

    assert {task: len(rows) for task, rows in found.items()} == {"CIFAR10": 31, "ImageNet": 27, "SQuAD": 11}
    assert len({one.key for rows in found.values() for one in rows}) == 69
    assert all(one.hours > 0 and one.num_devices and one.device for rows in found.values() for one in rows)
    assert sum(one.usd is None for rows in found.values() for one in rows) == len(
        [one for rows in found.values() for one in without_price(rows)]
    )


def test_the_published_809_times_are_from_244_hours_to_the_best_until_september_2018() -> None:
    found = improvement(until(submissions()["ImageNet"], published().until))

    assert found is not None
    assert round(found.before) == 244
    assert round(found.times) == published().times_faster == 809


def test_over_the_whole_file_it_is_5575_times() -> None:
    """From rounded hours, 244.0 and 0.0438, it reads 5,571."""
    found = improvement(submissions()["ImageNet"])

    assert found is not None
    assert round(round(found.before, 1) / round(found.after, 4)) == 5571
    assert round(found.times) == 5575


def test_the_published_79_times_need_the_published_spot_price() -> None:
    found = improvement(until(submissions()["ImageNet"], published().until), usd)

    assert found is not None
    assert (found.before, found.after) == (1112.6377, 48.4792)
    assert math.floor(found.before / published().spot_usd) == published().times_cheaper == 79
    # on demand, as submitted
    assert round(found.times) == 23


def test_fifteen_hours_became_three_on_eight_v100_and_twelve_became_three_on_a_tpu() -> None:
    """The published pairs, in whole hours, on the same hardware; DAWNBench's competition ended in April 2018."""
    found = {(one.device, one.num_devices): one for one in same_hardware(submissions()["ImageNet"])}
    gpus, tpu = found["V100", 8].records, found["Cloud TPU v2", 1].records

    fastai = next(one for one in gpus if one.training.day == date(2018, 4, 20))
    assert [(round(gpus[0].value), round(fastai.value)), (round(tpu[0].value), round(tpu[-1].value))] == [
        (15, 3),
        (12, 3),
    ]
    assert published().same_hardware_hours == ((15, 3), (12, 3))


def planted(key: int, *, device: str, speed: float, use: float, number: int, passes: float, **more: object) -> Training:
    """A training whose hours follow from its causes."""
    return made(
        key, taken=passes / (number * speed * use), device=device, num_devices=number, passes=passes, **more
    )  # fmt: skip


def test_a_planted_speed_up_comes_apart_into_exactly_its_causes() -> None:
    """Devices × 4, kind × 3, use × 1.5, batch E(1024)/E(256) at B_crit 512, algorithm × 2."""
    of_batch = (1 + 256 / 512) / (1 + 1024 / 512)
    slow = planted(1, device="a", speed=1, use=1, number=2, passes=90, batch_size=256, model="m", software="s")
    pair = planted(2, device="b", speed=3, use=1, number=2, passes=70, batch_size=256, model="m", software="s")
    fast = planted(
        3, device="b", speed=3, use=1.5, number=8, passes=90 / 2 / of_batch, batch_size=1024, model="n", software="t"
    )

    found = decompose(slow, fast, critical_batch=512, ratios=device_ratios([slow, pair, fast]))

    truth = {
        "number of devices": 4.0, "kind of device": 3.0, "use of each device": 1.5, "larger batch": of_batch,
        "algorithm": 2.0,
    }  # fmt: skip
    assert {part.cause: part.times for part in found.parts} == pytest.approx(truth)
    assert math.prod(part.times for part in found.parts) == pytest.approx(found.times)


def test_what_cannot_be_parted_stays_together_and_says_why() -> None:
    slow = planted(1, device="a", speed=1, use=1, number=2, passes=90, model="m", software="s")
    fast = planted(2, device="b", speed=3, use=1.5, number=2, passes=45, model="n", software="t")

    found = {part.cause: part for part in decompose(slow, fast).parts}

    assert found["kind and use of devices"].times == pytest.approx(4.5)
    assert "no pair" in found["kind and use of devices"].basis
    assert found["batch and algorithm"].times == pytest.approx(2)
    assert "critical batch" in found["batch and algorithm"].basis
    unknown = decompose(replace(slow, passes=None), fast)
    assert [part.cause for part in unknown.parts] == ["number of devices", "everything but devices"]
    nothing = decompose(replace(slow, passes=None, num_devices=None), fast)
    assert [(part.cause, part.times) for part in nothing.parts] == [("hardware and its use", pytest.approx(9.0))]


def test_a_pair_of_devices_reads_the_same_in_both_directions() -> None:
    slow = planted(1, device="z", speed=1, use=1, number=1, passes=10, model="m", software="s")
    fast = planted(2, device="a", speed=5, use=1, number=1, passes=12, model="m", software="s")

    (found,) = device_ratios([fast, slow])

    assert (found.slow, found.fast, found.num_pairs) == ("z", "a", 1)
    assert (found.times, found.low, found.high) == pytest.approx((5, 5, 5))
    back = {part.cause: part.times for part in decompose(fast, slow, ratios=[found]).parts}
    assert back["kind of device"] == pytest.approx(1 / 5)


@pytest.mark.parametrize("task", [one.task for one in trainings.targets()])
def test_the_steps_of_a_record_line_multiply_to_the_whole_speed_up(task: str) -> None:
    rows = submissions()[task]
    line = record_line(rows, hours)

    steps = decompose_line([one.training for one in line], ratios=device_ratios(rows))

    assert math.prod(step.times for step in steps) == pytest.approx(line[-1].of_baseline)
    for step in steps:
        assert math.prod(part.times for part in step.parts) == pytest.approx(step.times)
