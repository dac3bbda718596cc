"""A schedule in the words of a trainer: flags, or lines for its loop; plain text to copy.

What a trainer restores when it resumes decides what a change of the batch needs there; that is said beside the flags.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from noisescale_core.advice.plan import AdvisedStage, Schedule
from noisescale_core.advice.question import Limits

Trainer = Literal["megatron", "torchtitan", "nanogpt", "huggingface"]


@dataclass(frozen=True, slots=True)
class Launch:
    """What the schedule is launched with.

    Attributes:
        batch_now: Present batch, examples.
        units_per_example: Tokens of a sequence, for a trainer that counts tokens.
        examples_per_device: Micro-batch of a device; None where nobody said.
        num_devices: Data-parallel devices; None where nobody said.
        examples_per_step: r, what a step is worth.
    """

    batch_now: float
    units_per_example: float
    examples_per_device: int | None
    num_devices: int | None
    examples_per_step: float


def as_flags(
    found: Schedule,
    trainer: Trainer,
    given: Limits,
    *,
    batch_now: float,
    units_per_example: float,
    num_devices: int | None,
    examples_per_step: float,
) -> str:
    """The schedule for a trainer.

    Args:
        found: The schedule.
        trainer: Whose words.
        given: Devices and their micro-batch, from which accumulation steps follow.
        batch_now: Present batch, examples.
        units_per_example: Tokens of a sequence, for a trainer that counts tokens.
        num_devices: Of the run, where `given` does not say.
        examples_per_step: r, for a trainer that follows the noise scale itself.
    """
    launch = Launch(
        batch_now, units_per_example, given.examples_per_device, given.num_devices or num_devices, examples_per_step
    )
    write = {"megatron": _megatron, "torchtitan": _torchtitan, "nanogpt": _nanogpt, "huggingface": _huggingface}
    return "\n".join([f"# {found.why}", *write[trainer](found, launch), ""])


def _megatron(found: Schedule, launch: Launch) -> list[str]:
    """`--step-batch-size-schedule "0:768 250000:1536"`: the count of tokens from which each batch holds, from 0.

    Source: help and checks of the argument in Megatron-LM; with a sequence length thresholds are tokens.
    """
    parts = [f"0:{round(launch.batch_now)}"]
    for stage in found.stages:
        if stage.batch_size != round(launch.batch_now) or len(parts) > 1:
            parts.append(f"{round(stage.examples * launch.units_per_example)}:{stage.batch_size}")
    is_in_tokens = launch.units_per_example != 1
    unit = "tokens" if is_in_tokens else "examples: multiply by --seq-length where Megatron counts tokens"
    rates = [f"# from step {s.step}: --lr {s.learning_rate:.4g}" for s in found.stages if s.learning_rate is not None]
    restored = "# a resumed job restores its learning rate: --override-opt_param-scheduler takes the one that is given"
    return [
        f"# thresholds in {unit}; with --train-samples, without --rampup-batch-size",
        "# without --global-batch-size: anything but the largest of the schedule is an error",
        f'--step-batch-size-schedule "{" ".join(parts)}"',
        *([restored, *rates] if rates else []),
    ]


def _torchtitan(found: Schedule, launch: Launch) -> list[str]:
    """A launch for each stage.

    Source: torchtitan's checkpoint manager, which restores the scheduler unless told not to, and its scheduler, which
    counts from 0 where it was not restored and decays over `training.steps` unless it is told other total steps.
    """
    end = _end(found.stages[-1])

    def line(stage: AdvisedStage) -> str:
        flags = [f"--training.global_batch_size {stage.batch_size}"]
        if launch.examples_per_device is not None:
            flags.append(f"--training.local_batch_size {launch.examples_per_device}")
        if stage.learning_rate is None:
            flags.append(f"--lr_scheduler.total_steps {end}")
        else:
            flags += [
                f"--optimizer.lr {stage.learning_rate:.4g}",
                "--checkpoint.exclude_from_loading lr_scheduler",
                "--lr_scheduler.warmup_steps 0",
                f"--lr_scheduler.total_steps {max(end - stage.step, 1)}",
            ]
        return " ".join([*flags, f"--training.steps {_end(stage)}"])

    return [
        "# one launch a stage, each from the checkpoint of the one before",
        "# a restored scheduler would bring the old learning rate back; one that is left out counts from the launch, "
        "so warm-up is 0 and the decay ends with the plan",
        *_each(found, line),
    ]


def _nanogpt(found: Schedule, launch: Launch) -> list[str]:
    """A list for the loop; nanoGPT refuses accumulation steps that are no multiple of the devices."""
    micro, devices = launch.examples_per_device, launch.num_devices

    def line(stage: AdvisedStage) -> str:
        rate = "None" if stage.learning_rate is None else f"{stage.learning_rate:.4g}"
        steps = stage.batch_size if micro is None else _accumulation(stage, micro, devices) * (devices or 1)
        return f"    ({stage.step}, {steps}, {rate}),"

    if micro is None:
        said = "# (from step, examples in a step, learning rate); examples_per_device= makes them accumulation steps"
    else:
        over = "a multiple of num_devices=, if given" if devices is None else f"over {_count(devices, 'device')}"
        said = f"# (from step, gradient_accumulation_steps, learning rate); batch_size = {micro}, {over}"
    return [said, "# rates before any decay of the loop's own", "schedule = [", *_each(found, line), "]"]


def _huggingface(found: Schedule, launch: Launch) -> list[str]:
    """One launch with the callback that follows the noise scale, and what it would come to.

    Source: transformers, `Trainer._load_optimizer_and_scheduler` restores both; `max_steps` sets the end of a schedule.
    """
    micro, devices = launch.examples_per_device or 1, launch.num_devices or 1
    largest = max(stage.batch_size for stage in found.stages)
    worth = f"{launch.examples_per_step:.4g}"

    def line(stage: AdvisedStage) -> str:
        rate = "" if stage.learning_rate is None else f", learning rate {stage.learning_rate:.4g}"
        return f"#   from step {stage.step}: gradient_accumulation_steps {_accumulation(stage, micro, devices)}{rate}"

    shrinks = found.stages[0].batch_size < launch.batch_now
    return [
        "# One launch for all stages: a launch with --resume_from_checkpoint restores the old learning rate whatever",
        "# --learning_rate says, and ends its schedule at its own --max_steps.",
        "from noisescale.integrations.huggingface import NoiseScaleCallback",
        "from noisescale_lab.follow.callbacks.huggingface import FollowCallback",
        "",
        'noise = NoiseScaleCallback(project="…", task="…")',
        f"follow = FollowCallback(noise, price={worth}, largest={largest}, dry_run=False)",
        "trainer = Trainer(..., callbacks=[noise, follow])",
        f"# What it would come to, with --per_device_train_batch_size {micro} on {_count(devices, 'device')}:",
        *_each(found, line),
        *(["# Batches only grow while a Trainer runs: begin a new training to lower this one."] if shrinks else []),
    ]


def _accumulation(stage: AdvisedStage, micro: int, devices: int | None) -> int:
    """Micro-batches of a device in a step; at least one."""
    return max(1, math.floor(stage.batch_size / micro / (devices or 1) + 0.5))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _end(stage: AdvisedStage) -> int:
    return stage.step + round(stage.num_steps)


def _each(found: Schedule, write: Callable[[AdvisedStage], str]) -> list[str]:
    return [write(stage) for stage in found.stages]
