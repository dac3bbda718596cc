"""Runs of one's own place the lines by which a path tells its learning rate."""

import math
import random

import pytest

from noisescale_core.advice.learning_rate.rate_coefficients import coefficients
from noisescale_core.advice.learning_rate.rate_verdict import octaves_of
from noisescale_core.estimators.path import Reading
from noisescale_server.analysis.calibration.rate_lines import (
    BETWEEN_RUNS,
    BETWEEN_TASKS,
    OF_FAMILY,
    KnownRate,
    KnownRates,
    own_lines,
)

FAMILY, SCHEDULE = "Adam", "constant"
RATES = (-2.0, -1.0, 0.0, 1.0, 2.0)
LINES = coefficients().families[FAMILY].lines[SCHEDULE]
PUSHES = coefficients().families[FAMILY].pushes[SCHEDULE]


def known(off: float, *, rates: tuple[float, ...] = RATES, scatter: float = 0.0, seed: int = 0) -> KnownRates:
    """Runs whose readings all lie so many scatters off the lines."""
    rng = random.Random(seed)
    return KnownRates(0.0, tuple(run_at(y, [off + rng.gauss(0, scatter) for _ in (*LINES, *PUSHES)]) for y in rates))


def run_at(octaves: float, off: list[float]) -> KnownRate:
    of_ratio, of_push = off[: len(LINES)], off[len(LINES) :]
    return KnownRate(
        octaves,
        tuple(line.offset + line.slope * octaves + line.scatter * x for line, x in zip(LINES, of_ratio, strict=True)),
        tuple(
            one.line.offset + one.line.slope * octaves + one.line.scatter * x
            for one, x in zip(PUSHES, of_push, strict=True)
        ),
    )


def offs(own=(), others=()):
    found = own_lines(FAMILY, SCHEDULE, tuple(own), tuple((task,) for task in others))
    assert found is not None
    return [(moved.offset - line.offset) / line.scatter for moved, line in zip(found.lines, LINES, strict=True)]


def test_without_runs_there_are_no_own_lines() -> None:
    assert own_lines(FAMILY, SCHEDULE, (), ()) is None
    assert own_lines(FAMILY, SCHEDULE, (KnownRates(0.1, ()),), ((KnownRates(0.1, ()),),)) is None


def test_lines_follow_the_runs_of_the_task_and_get_narrower_with_each() -> None:
    few, many = (own_lines(FAMILY, SCHEDULE, (known(1.0, rates=rates),), ()) for rates in (RATES[:2], RATES * 3))
    assert few is not None
    assert many is not None

    for two, fifteen, line in zip(few.lines, many.lines, LINES, strict=True):
        assert line.offset < two.offset < fifteen.offset < line.offset + line.scatter
        assert fifteen.offset > line.offset + 0.9 * line.scatter
        assert fifteen.scatter < two.scatter < line.scatter
        assert (two.slope, fifteen.slope) == (line.slope, line.slope)
    for two, fifteen, push in zip(few.pushes, many.pushes, PUSHES, strict=True):
        assert push.line.offset < two.line.offset < fifteen.line.offset
        assert fifteen.both_sd < two.both_sd < push.both_sd


def test_other_tasks_move_the_lines_less_than_runs_of_the_task() -> None:
    of_others = offs(others=[known(1.0, seed=seed) for seed in range(3)])
    of_own = offs(own=[known(1.0)])
    of_both = offs(own=[known(1.0)], others=[known(-1.0, seed=seed) for seed in range(3)])

    for others, own, both in zip(of_others, of_own, of_both, strict=True):
        assert 0 < others < 0.5 < both < own < 1


def test_a_run_that_got_stuck_moves_the_lines_no_farther_than_three_scatters_would() -> None:
    stuck = KnownRates(0.0, (run_at(0.0, [50.0] * 8),))

    three = KnownRates(0.0, (run_at(0.0, [3.0] * 8),))

    assert offs(own=[known(0.0), stuck]) == pytest.approx(offs(own=[known(0.0), three]))


def test_runs_say_the_less_the_less_is_known_of_their_best_rate() -> None:
    sure, unsure = (offs(own=[KnownRates(error, known(1.0).runs)]) for error in (0.0, 2.0))

    assert all(one < other for one, other in zip(unsure, sure, strict=True))


def test_readings_that_are_not_known_leave_their_share_of_the_plan_as_published() -> None:
    runs = tuple(KnownRate(one.octaves, (None, *one.ratios[1:]), (None,) * 4) for one in known(1.0).runs)

    found = own_lines(FAMILY, SCHEDULE, (KnownRates(0.0, runs),), ())

    assert found is not None
    assert found.lines[0].offset == pytest.approx(LINES[0].offset)
    assert found.lines[1].offset > LINES[1].offset
    assert found.pushes[2].line.offset == pytest.approx(PUSHES[2].line.offset)


def test_what_is_said_counts_the_runs() -> None:
    said = {
        name: own_lines(FAMILY, SCHEDULE, own, others).said  # type: ignore[union-attr]
        for name, own, others in (
            ("own", (known(0.0),), ((known(0.5),),)),
            ("one", (known(0.0, rates=(0.0,)),), ()),
            ("others", (), ((known(0.5),), (known(0.2),))),
        )
    }

    assert said == {
        "own": "Calibrated here on 5 runs of this task.",
        "one": "Calibrated here on 1 run of this task.",
        "others": "Calibrated here on 10 runs of other tasks.",
    }


def test_stated_spreads_come_true_where_tasks_and_runs_differ_as_they_do() -> None:
    """400 tasks, each with its own offset and five known runs: errors of five more over what is stated."""
    rng = random.Random(20261126)
    line = LINES[1]
    squares = weights = 0.0
    for task in range(400):
        of_task = rng.gauss(0, math.hypot(OF_FAMILY, BETWEEN_TASKS))
        found = own_lines(FAMILY, SCHEDULE, (known(of_task, scatter=BETWEEN_RUNS, seed=task),), ())
        assert found is not None
        for _ in range(5):
            octaves = rng.gauss(0, coefficients().prior_sd)
            q = line.offset + line.slope * octaves + line.scatter * rng.gauss(of_task, BETWEEN_RUNS)
            told = octaves_of(Reading(q, 0.0), found.lines[1])
            if not told.beyond:
                squares += ((octaves - told.mean) / told.sd) ** 2
                weights += 1

    assert math.sqrt(squares / weights) == pytest.approx(1.0, abs=0.05)
