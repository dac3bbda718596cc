"""`FollowCallback` in the real `Trainer`: which rows go into which step, and at what rate."""

import gc
import itertools

import pytest
import torch
from torch import nn
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from client_runs import make_kept_run
from noisescale.integrations.huggingface import NoiseScaleCallback
from noisescale_core.errors import ConfigError
from noisescale_lab.follow.callbacks.huggingface import FollowCallback
from noisy_mean import DIMENSIONS, Mean
from scripted_run import log_step

NUM_ROWS, MICRO_BATCH, FIRST_COUNT = 400, 2, 2


@pytest.fixture(autouse=True, scope="module")
def _frozen_modules():
    """The Trainer collects garbage several times, each time through all that transformers has loaded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class OneWeight(nn.Module):
    """Sees rows by their number."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.seen = []

    def forward(self, row):
        self.seen.append(row.tolist())
        return {"loss": (self.weight - row.float()).square().mean()}


class Script(TrainerCallback):
    """Writes the noise scale of each step, and keeps which rows went into it and its rate."""

    def __init__(self, run, phi):
        self.run, self.phi, self.rows, self.rates = run, phi, [], []

    def on_pre_optimizer_step(self, args, state, control, model, lr_scheduler, **_):
        log_step(self.run, self.phi, state.global_step, 0.05)
        self.rates.append(lr_scheduler.optimizer.param_groups[0]["lr"])
        self.rows.append(list(itertools.chain.from_iterable(model.seen)))
        model.seen.clear()


class Stream(IterableDataset):
    def __iter__(self):
        return ({"row": number} for number in itertools.count())


def train(tmp_path, phi=4096.0, rows=None, resume=None, follow=None, **args):
    run, _ = make_kept_run()
    script = Script(run, phi)
    defaults = {"price": 16.0, "largest": 64, "dry_run": False, "progress": lambda _: None}
    callback = FollowCallback(run, **(defaults | (follow or {})))
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        per_device_train_batch_size=MICRO_BATCH,
        gradient_accumulation_steps=FIRST_COUNT,
        learning_rate=0.01,
        remove_unused_columns=False,
        **{"num_train_epochs": 2, "save_strategy": "no", "logging_strategy": "no"} | args,
    )
    dataset = [{"row": number} for number in range(NUM_ROWS)] if rows is None else rows
    trainer = Trainer(model=OneWeight(), args=arguments, train_dataset=dataset, callbacks=[script, callback])
    trainer.train(resume_from_checkpoint=resume)
    return trainer, script, callback.follower


@pytest.mark.thorough
def test_steps_grow_by_whole_micro_batches_and_every_row_is_seen_once_an_epoch(tmp_path):
    _, script, follower = train(tmp_path)

    sizes = [len(rows) for rows in script.rows]
    changes = {decision.step: decision.to_batch for decision in follower.decisions}
    assert len(changes) >= 2
    expected, now, in_epoch = [], MICRO_BATCH * FIRST_COUNT, 0
    while len(expected) < len(sizes):
        expected.append(min(now, NUM_ROWS - in_epoch))
        in_epoch = (in_epoch + expected[-1]) % NUM_ROWS
        now = changes.get(len(expected), now)
    assert sizes == expected
    every_row = list(itertools.chain.from_iterable(script.rows))
    assert sorted(every_row[:NUM_ROWS]) == sorted(every_row[NUM_ROWS:]) == list(range(NUM_ROWS))


def test_the_rate_is_the_trainer_s_schedule_times_the_factor(tmp_path):
    _, script, follower = train(tmp_path, lr_scheduler_type="cosine")

    plan = NUM_ROWS // (MICRO_BATCH * FIRST_COUNT) * 2
    factors = [1.0] * len(script.rates)
    for decision in follower.decisions:
        factors[decision.step :] = [decision.to_rate_factor] * (len(factors) - decision.step)
    cosine = torch.cos(torch.arange(len(factors)) * torch.pi / plan).double()
    expected = [0.01 * factor * (1 + float(c)) / 2 for factor, c in zip(factors, cosine, strict=True)]
    assert factors[-1] > 1
    assert script.rates == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.thorough
def test_a_stream_trains_the_planned_steps_at_multiples_of_the_first_batch(tmp_path):
    """But for two: one is cut in two where the first batches would have ended, the last is as large as the first."""
    _, script, follower = train(tmp_path, rows=Stream(), max_steps=120)

    *sizes, last = [len(rows) for rows in script.rows]
    assert len(sizes) + 1 == 120
    assert last == MICRO_BATCH * FIRST_COUNT
    assert sizes[-1] == follower.batch_size > last
    assert follower.batch_size % last == 0
    assert all(size % last == 0 for size in sizes)
    assert sum(size < before for before, size in itertools.pairwise(sizes)) <= 1


class MeanOfRows(Mean):
    """As the Trainer calls a model."""

    def forward(self, row):
        return {"loss": super().forward(row)}


@pytest.mark.slow
@pytest.mark.thorough
def test_a_training_that_is_measured_and_followed_ends_at_the_right_batch(tmp_path):
    run, kept = make_kept_run()
    rows = [{"row": row} for row in torch.randn(3000, DIMENSIONS, generator=torch.Generator().manual_seed(5))]
    noise = NoiseScaleCallback(run=run)
    follow = FollowCallback(noise, price=128.0, largest=1024, dry_run=False, progress=lambda _: None)
    arguments = TrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, report_to=[], disable_tqdm=True, dataloader_pin_memory=False,
        per_device_train_batch_size=4, gradient_accumulation_steps=4, learning_rate=1e-6, num_train_epochs=3,
        remove_unused_columns=False, save_strategy="no", logging_strategy="no", optim="sgd", max_grad_norm=0,
    )  # fmt: skip

    Trainer(model=MeanOfRows(128.0), args=arguments, train_dataset=rows, callbacks=[noise, follow]).train()

    sizes = [row.global_batch for row in kept.rows()]
    assert follow.follower.batch_size == pytest.approx(128, rel=0.6)
    grown = [decision for decision in follow.follower.decisions if decision.to_batch != decision.from_batch]
    assert grown
    assert all(sizes[decision.step] == decision.to_batch for decision in grown)
    assert sum(sizes) == 3 * len(rows)


def test_a_dry_run_leaves_the_trainer_alone(tmp_path):
    trainer, script, follower = train(tmp_path, follow={"dry_run": True})

    assert {len(rows) for rows in script.rows} == {MICRO_BATCH * FIRST_COUNT}
    assert follower.decisions
    assert trainer.args.gradient_accumulation_steps == FIRST_COUNT


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("rows", [Stream(), [{"row": number} for number in range(3000)]])
def test_a_resumed_training_goes_on_with_its_decisions(tmp_path, rows):
    arguments = {"rows": rows, "max_steps": 90, "save_strategy": "steps", "save_steps": 60}
    _, whole, follower = train(tmp_path, **arguments)

    trainer, resumed, after = train(tmp_path, resume=str(tmp_path / "checkpoint-60"), **arguments)

    before = [decision for decision in follower.decisions if decision.step <= 60]
    assert len(before) >= 1
    assert after.decisions[: len(before)] == before
    assert resumed.rates[0] == pytest.approx(whole.rates[60])
    assert len(resumed.rows[-5]) == after.batch_size >= before[-1].to_batch
    assert trainer.args.gradient_accumulation_steps == FIRST_COUNT


def test_batches_of_a_trainer_only_grow(tmp_path):
    _, script, follower = train(tmp_path, phi=0.25, follow={"price": 1.0}, lr_scheduler_type="constant")

    assert {len(rows) for rows in script.rows} == {MICRO_BATCH * FIRST_COUNT}
    assert "batches do not shrink here" in follower.why


def test_a_callback_without_its_arguments_or_in_the_wrong_place_says_so():
    without, before = FollowCallback(), FollowCallback(NoiseScaleCallback())

    with pytest.raises(ConfigError, match="restore_callback_states_from_checkpoint"):
        without._run()
    with pytest.raises(ConfigError, match="put NoiseScaleCallback before FollowCallback"):
        before._run()
