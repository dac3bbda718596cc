"""Which known techniques a training uses, by what it has logged: its config, and how batch and rate went.

The techniques are those that brought DAWNBench's time down. What nobody logged is unknown, never "no".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Answer = Literal["yes", "no", "unknown"]
RAMP = 1.2
"""The batch rose where its largest is so many times its smallest."""
WARM_UP = 0.5
"""The rate warmed up where it began below this share of its peak."""

PRECISION_KEYS = ("bf16", "fp16", "amp", "mixed_precision", "precision", "dtype", "torch_dtype")
LOW_PRECISION = ("bf16", "fp16", "16", "half", "float16", "bfloat16", "fp8", "float8", "mixed")
FULL_PRECISION = ("32", "fp32", "float32", "no", "full", "none")
RESIZING_KEYS = ("progressive_resizing", "image_sizes", "resolution_schedule", "seq_len_schedule", "sequence_lengths")
DECAY_KEYS = ("no_decay_norm", "no_weight_decay_on_norm", "no_bias_bn_decay", "weight_decay_exclude", "no_decay")
WARM_UP_KEYS = ("warmup_steps", "warmup_ratio", "warmup", "warmup_epochs", "warmup_iters", "lr_warmup_steps")
SPOT_KEYS = ("spot", "preemptible", "interruptible")


@dataclass(frozen=True, slots=True)
class Logged:
    """What a run has logged besides its config; None where it has not.

    Attributes:
        batch_low: Smallest global batch.
        batch_high: Largest global batch.
        rate_first: Learning rate of its first rows.
        rate_peak: Largest learning rate.
        num_streams: Processes that wrote to it one after the other.
    """

    batch_low: float | None = None
    batch_high: float | None = None
    rate_first: float | None = None
    rate_peak: float | None = None
    num_streams: int = 1


@dataclass(frozen=True, slots=True)
class Technique:
    """One line of the checklist.

    Attributes:
        name: Of the technique.
        answer: Whether the run uses it.
        basis: What says so, or what to log so that something does.
    """

    name: str
    answer: Answer
    basis: str


def checklist(config: Mapping[str, Any], logged: Logged) -> tuple[Technique, ...]:
    """The six techniques of source C, each with its answer.

    Args:
        config: Of the run; keys of nested parts count, too.
        logged: What else it has logged.
    """
    flat = dict(_flat(config))
    return (
        Technique("progressive resizing", *_of_config(flat, RESIZING_KEYS)),
        Technique("mixed precision", *_precision(flat)),
        Technique("no weight decay on normalisation", *_of_config(flat, DECAY_KEYS)),
        Technique("batch ramp", *_ramp(logged)),
        Technique("learning-rate warm-up", *_warm_up(flat, logged)),
        Technique("supervised on interruptible machines", *_spot(flat, logged)),
    )


def _flat(config: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
    """(last part of the key in lower case, value) of every leaf; the outer of two of one name counts."""
    inner = [pair for value in config.values() if isinstance(value, Mapping) for pair in _flat(value)]
    own = [(key.rpartition(".")[2].rpartition("/")[2].casefold(), value) for key, value in config.items()]
    return [*inner, *own]


def _first(flat: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, Any] | None:
    return next(((key, flat[key]) for key in keys if flat.get(key) is not None), None)


def _of_config(flat: Mapping[str, Any], keys: Sequence[str]) -> tuple[Answer, str]:
    found = _first(flat, keys)
    if found is None:
        return "unknown", f"put {keys[0]!r} into the config of the run"
    key, value = found
    return ("yes" if _is_on(value) else "no"), f"config: {key} = {_short(value)}"


def _precision(flat: Mapping[str, Any]) -> tuple[Answer, str]:
    for key in PRECISION_KEYS:
        value = flat.get(key)
        if value is None or (value is False and key in ("bf16", "fp16")):
            continue
        word = str(value).casefold()
        if value is True or any(part in word for part in LOW_PRECISION):
            return "yes", f"config: {key} = {_short(value)}"
        if value is False or word in FULL_PRECISION or "32" in word:
            return "no", f"config: {key} = {_short(value)}"
    if flat.get("bf16") is False or flat.get("fp16") is False:
        return "no", "config: neither bf16 nor fp16"
    return "unknown", "put 'bf16' or 'precision' into the config of the run"


def _ramp(logged: Logged) -> tuple[Answer, str]:
    if logged.batch_low is None or logged.batch_high is None or logged.batch_low <= 0:
        return "unknown", "no batch size was logged"
    said = f"logged batch {_batch(logged.batch_low)} to {_batch(logged.batch_high)}"
    return ("yes" if logged.batch_high >= RAMP * logged.batch_low else "no"), said


def _batch(size: float) -> str:
    """With all of its digits: nobody reads a batch as 5.243e+05."""
    return f"{size:,.0f}" if size == round(size) else f"{size:,.4g}"


def _warm_up(flat: Mapping[str, Any], logged: Logged) -> tuple[Answer, str]:
    if logged.rate_first is not None and logged.rate_peak:
        said = f"logged rate {logged.rate_first:.3g} at first, {logged.rate_peak:.3g} at most"
        return ("yes" if logged.rate_first < WARM_UP * logged.rate_peak else "no"), said
    return _of_config(flat, WARM_UP_KEYS)


def _spot(flat: Mapping[str, Any], logged: Logged) -> tuple[Answer, str]:
    found = _first(flat, SPOT_KEYS)
    resumed = f"resumed {logged.num_streams - 1} times" if logged.num_streams > 1 else "never resumed"
    if found is None:
        return "unknown", f"put 'spot' into the config of the run; it was {resumed}"
    key, value = found
    return ("yes" if _is_on(value) else "no"), f"config: {key} = {_short(value)}; {resumed}"


def _is_on(value: Any) -> bool:
    if isinstance(value, str):
        return value.casefold() not in ("", "no", "false", "none", "off", "0")
    return bool(value)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
