"""A schedule in the words of a trainer: flags, configuration or a list for the loop; plain text to copy."""

from collections.abc import Callable
from typing import Literal

from noisescale.theory.advice.parts import Constraints
from noisescale.theory.advice.plan import AdvisedStage, Schedule

Trainer = Literal["megatron", "torchtitan", "nanogpt", "huggingface"]


def as_flags(
    found: Schedule, trainer: Trainer, given: Constraints, *, batch_now: float, units_per_example: float
) -> str:
    """The schedule for a trainer.

    Args:
        found: The schedule.
        trainer: Whose words.
        given: Devices and their micro-batch, from which accumulation steps follow.
        batch_now: Present batch, examples.
        units_per_example: Tokens of a sequence, for a trainer that counts tokens.
    """
    if trainer == "megatron":
        return _megatron(found, batch_now, units_per_example)
    write = {"torchtitan": _torchtitan, "nanogpt": _nanogpt, "huggingface": _huggingface}[trainer]
    return write(found, given)


def _megatron(found: Schedule, batch_now: float, units_per_example: float) -> str:
    """`--step-batch-size-schedule "0:768 250000:1536"`: the count of tokens from which each batch holds, from 0.

    Source: help of the argument in Megatron-LM; with a sequence length thresholds are tokens, and it excludes
    `--rampup-batch-size` and needs training by samples.
    """
    parts = [f"0:{round(batch_now)}"]
    for stage in found.stages:
        if stage.batch_size != round(batch_now) or len(parts) > 1:
            parts.append(f"{round(stage.examples * units_per_example)}:{stage.batch_size}")
    unit = "tokens" if units_per_example != 1 else "examples: multiply by --seq-length where Megatron counts tokens"
    lines = [
        f"# thresholds in {unit}; with --train-samples, without --rampup-batch-size",
        f'--step-batch-size-schedule "{" ".join(parts)}"',
        *(f"# from step {s.step}: --lr {s.learning_rate:.4g}" for s in found.stages if s.learning_rate is not None),
    ]
    return _text(found, lines)


def _torchtitan(found: Schedule, given: Constraints) -> str:
    def launch(stage: AdvisedStage) -> str:
        local = "" if given.examples_per_device is None else f" --training.local_batch_size={given.examples_per_device}"
        rate = "" if stage.learning_rate is None else f" --optimizer.lr={stage.learning_rate:.4g}"
        return f"--training.global_batch_size={stage.batch_size}{local}{rate} --training.steps={_end(stage)}"

    return _text(found, ["# one launch a stage, each from the checkpoint of the one before", *_each(found, launch)])


def _nanogpt(found: Schedule, given: Constraints) -> str:
    def line(stage: AdvisedStage) -> str:
        rate = "None" if stage.learning_rate is None else f"{stage.learning_rate:.4g}"
        return f"    ({stage.step}, {_accumulation(stage, given)}, {rate}),"

    counted = "gradient_accumulation_steps over all devices" if given.examples_per_device else "examples in a step"
    return _text(found, [f"# (from step, {counted}, learning rate)", "schedule = [", *_each(found, line), "]"])


def _huggingface(found: Schedule, given: Constraints) -> str:
    devices = given.num_devices or 1

    def launch(stage: AdvisedStage) -> str:
        size = given.examples_per_device or 1
        rate = "" if stage.learning_rate is None else f" --learning_rate {stage.learning_rate:.4g}"
        accumulation = round(stage.batch_size / size / devices)
        flags = f"--per_device_train_batch_size {size} --gradient_accumulation_steps {accumulation}"
        return f"{flags}{rate} --max_steps {_end(stage)}"

    return _text(
        found,
        [f"# {devices} devices; one launch a stage, each with --resume_from_checkpoint", *_each(found, launch)],
    )


def _accumulation(stage: AdvisedStage, given: Constraints) -> int:
    return round(stage.batch_size / given.examples_per_device) if given.examples_per_device else stage.batch_size


def _end(stage: AdvisedStage) -> int:
    return stage.step + round(stage.num_steps)


def _each(found: Schedule, write: Callable[[AdvisedStage], str]) -> list[str]:
    return [write(stage) for stage in found.stages]


def _text(found: Schedule, lines: list[str]) -> str:
    return "\n".join([f"# {found.why}", *lines, ""])
