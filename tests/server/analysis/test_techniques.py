"""The checklist says yes or no only where something was logged; levers and memory follow simple arithmetic."""

import pytest

from noisescale_server.analysis.cost.bottleneck import beyond_memory, levers
from noisescale_server.analysis.cost.techniques import Logged, checklist

NAMES = [
    "progressive resizing",
    "mixed precision",
    "no weight decay on normalisation",
    "batch ramp",
    "learning-rate warm-up",
    "supervised on interruptible machines",
]


def answers(config: dict[str, object], logged: Logged | None = None) -> dict[str, str]:
    return {one.name: one.answer for one in checklist(config, logged or Logged())}


def test_what_nobody_logged_is_unknown_and_says_what_to_log() -> None:
    found = checklist({}, Logged())

    assert [one.name for one in found] == NAMES
    assert {one.answer for one in found} == {"unknown"}
    assert all("config" in one.basis or "logged" in one.basis for one in found)


def test_a_config_answers_by_its_keys_nested_ones_too() -> None:
    config = {
        "trainer": {"bf16": True, "warmup_steps": 500},
        "image_sizes": [128, 224],
        "no_decay_norm": False,
        "spot": "yes",
    }

    found = answers(config, Logged(batch_low=256, batch_high=1024, num_streams=3))

    assert found == dict(zip(NAMES, ["yes", "yes", "no", "yes", "yes", "yes"], strict=True))


@pytest.mark.parametrize(
    ("config", "answer"),
    [
        ({"bf16": False, "fp16": False}, "no"),
        ({"bf16": False, "fp16": True}, "yes"),
        ({"bf16": False}, "no"),
        ({"precision": "bf16-mixed"}, "yes"),
        ({"precision": "32-true"}, "no"),
        ({"precision": 16}, "yes"),
        ({"mixed_precision": "no"}, "no"),
        ({"dtype": "torch.float32"}, "no"),
        ({"dtype": "strange"}, "unknown"),
    ],
)
def test_precision_is_read_as_trainers_write_it(config: dict[str, object], answer: str) -> None:
    assert answers(config)["mixed precision"] == answer


def test_a_logged_rate_says_more_of_warm_up_than_the_config() -> None:
    config = {"warmup_steps": 500}

    assert answers(config, Logged(rate_first=0.1, rate_peak=0.1))["learning-rate warm-up"] == "no"
    assert answers(config, Logged(rate_first=0.001, rate_peak=0.1))["learning-rate warm-up"] == "yes"


def test_the_cheapest_lever_comes_first_and_no_lever_promises_more_than_its_share() -> None:
    found = levers({"accelerator": 0.5, "host": 0.25, "data": 0.2, "network": 0.04})

    assert [one.share_of for one in found] == ["data", "host", "accelerator"]
    assert [one.most_times for one in found] == pytest.approx([1.25, 4 / 3, 2.0])
    assert levers({}) == ()


def test_accumulation_pays_the_overhead_again_and_checkpointing_a_third_of_the_compute() -> None:
    found = beyond_memory(64, 16, overhead_seconds=0.1, seconds_per_example=0.01)

    assert found.num_micro_batches == 4
    assert found.accumulation_times == pytest.approx((0.4 + 0.64) / 0.74)
    assert found.checkpointing_times == pytest.approx((0.1 + 0.64 * 4 / 3) / 0.74)
    assert beyond_memory(16, 16, overhead_seconds=0.1, seconds_per_example=0.01).accumulation_times == 1.0
    assert beyond_memory(17, 16, overhead_seconds=0.1, seconds_per_example=0.01).num_micro_batches == 2
