"""Flags that a trainer takes as they are, with what it restores when it resumes."""

import re

import pytest

from noisescale_core.advice.plan import AdvisedStage, Schedule
from noisescale_core.advice.question import Question
from noisescale_core.advice.trainer_flags import as_flags

STAGES = (
    AdvisedStage(step=1000, examples=256_000.0, num_steps=400.0, batch_size=960, learning_rate=0.2449),
    AdvisedStage(step=1400, examples=640_000.0, num_steps=600.0, batch_size=1920, learning_rate=0.35),
)
FOUR_DEVICES = {"examples_per_device": 8, "num_devices": 4}


def written(trainer, stages=STAGES, batch_now=256.0, units=2048.0, devices_of_run=None, **given):
    found = Schedule(stages, growth_exponent=0.5, gamma=0.9, saving=0.05, hysteresis=1.4, why="Because it grows.")
    return as_flags(
        found,
        trainer,
        Question(**given),
        batch_now=batch_now,
        units_per_example=units,
        num_devices=devices_of_run,
        examples_per_step=921.6,
    )


@pytest.mark.parametrize("trainer", ["megatron", "torchtitan", "nanogpt", "huggingface"])
def test_every_text_begins_with_its_reason_and_has_no_line_that_a_shell_would_break(trainer):
    text = written(trainer, **FOUR_DEVICES)

    assert text.startswith("# Because it grows.\n")
    assert text.endswith("\n")
    assert "None" not in text


def test_megatron_counts_tokens_from_0_and_takes_no_global_batch_size():
    text = written("megatron")

    assert '--step-batch-size-schedule "0:256 524288000:960 1310720000:1920"' in text
    flags = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(flags) == 1
    assert "# without --global-batch-size: anything but the largest of the schedule is an error" in text


def test_megatron_without_a_known_sequence_length_says_how_to_get_tokens():
    text = written("megatron", units=1.0)

    assert '"0:256 256000:960 640000:1920"' in text
    assert "multiply by --seq-length" in text


def test_torchtitan_leaves_the_old_scheduler_out_and_ends_its_decay_with_the_plan():
    first, second = [line for line in written("torchtitan", **FOUR_DEVICES).splitlines() if line.startswith("--")]

    assert first == (
        "--training.global_batch_size 960 --training.local_batch_size 8 --optimizer.lr 0.2449 "
        "--checkpoint.exclude_from_loading lr_scheduler --lr_scheduler.warmup_steps 0 "
        "--lr_scheduler.total_steps 1000 --training.steps 1400"
    )
    assert "--optimizer.lr 0.35" in second
    assert second.endswith("--lr_scheduler.total_steps 600 --training.steps 2000")


def test_torchtitan_keeps_the_scheduler_where_no_rate_is_known():
    stages = tuple(AdvisedStage(s.step, s.examples, s.num_steps, s.batch_size, None) for s in STAGES)

    text = written("torchtitan", stages)

    assert "exclude_from_loading" not in text
    assert text.count("--lr_scheduler.total_steps 2000") == 2


@pytest.mark.parametrize(
    ("given", "devices_of_run"),
    [(FOUR_DEVICES, None), ({"examples_per_device": 8}, 4), ({"examples_per_device": 7}, 4)],
)
def test_nanogpt_accumulates_multiples_of_its_devices(given, devices_of_run):
    text = written("nanogpt", devices_of_run=devices_of_run, **given)

    counts = [int(one) for one in re.findall(r"^    \(\d+, (\d+),", text, re.MULTILINE)]
    assert len(counts) == 2
    assert all(count % 4 == 0 for count in counts)
    assert counts[0] * given["examples_per_device"] == pytest.approx(960, rel=0.03)
    assert "4 devices" in text


def test_nanogpt_without_a_micro_batch_gets_examples_and_is_told_so():
    text = written("nanogpt")

    assert "(1000, 960, 0.2449)," in text
    assert "examples_per_device=" in text


def test_hugging_face_is_one_launch_that_follows_and_never_resumes_into_another_rate():
    text = written("huggingface", **FOUR_DEVICES)

    code = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert code[-2] == "follow = FollowCallback(noise, price=921.6, largest=1920, dry_run=False)"
    assert not any("resume_from_checkpoint" in line or "--learning_rate" in line for line in code)
    assert "#   from step 1000: gradient_accumulation_steps 30, learning rate 0.2449" in text
    assert "--per_device_train_batch_size 8 on 4 devices" in text
    assert "only grow" not in text


def test_hugging_face_is_told_that_a_batch_cannot_shrink():
    assert "Batches only grow while a Trainer runs" in written("huggingface", batch_now=4096.0, **FOUR_DEVICES)


def test_hugging_face_code_is_python():
    compile(written("huggingface", **FOUR_DEVICES), "printed", "exec")
