"""The advice for the next run of a task, which is a setting, and no run that has begun."""

from dataclasses import fields

import pytest

from noisescale_core.advice.evidence.evidence import Measured, Prior, Swept
from noisescale_core.advice.evidence.kappa import UNCALIBRATED
from noisescale_core.advice.parts.parts import Interval, RunSetting, RunSoFar
from noisescale_core.advice.question import Question
from noisescale_core.advice.recommendation import recommend

SETTING = RunSetting(batch_size=256, learning_rate=0.1, optimizer="SGD", example="image", planned_steps=2000)
SWEPT = Swept(swept=Interval(1000.0, 700.0, 1400.0, 0.95), kappa=UNCALIBRATED, sweeps=(1000.0,))


def test_a_setting_holds_nothing_that_is_measured():
    measured = {one.name for one in fields(RunSoFar)} - {one.name for one in fields(RunSetting)}

    assert {"noise_scale", "reason", "flags", "divergence", "run_id", "step", "known"} <= measured


def test_a_swept_task_is_told_the_batch_to_start_with():
    found = recommend(SETTING, SWEPT, Question(examples_per_step=1000.0))

    assert found.decision == "start"
    assert found.recommended_batch_size == 1024
    assert (found.run_id, found.step, found.odds, found.current_batch_size) == (None, None, None, None)


def test_a_task_without_a_setting_is_told_to_log_one():
    found = recommend(RunSetting(batch_size=None), SWEPT, Question(examples_per_step=1000.0))

    assert found.decision == "insufficient_evidence"
    assert found.recommended_batch_size is None


def test_what_is_not_known_of_a_task_is_said_of_the_task():
    found = recommend(SETTING, Prior(), Question(examples_per_step=1000.0))

    assert found.decision == "insufficient_evidence"
    assert found.warnings[0].code == "uncalibrated"


def test_a_run_that_has_not_begun_has_no_noise_scale_of_its_own():
    with pytest.raises(AssertionError):
        recommend(SETTING, Measured(), Question(examples_per_step=1000.0))
