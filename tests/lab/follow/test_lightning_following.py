"""`FollowCallback` in the real `lightning.Trainer`: which rows go into which step, and at what rate."""

import gc
import itertools

import lightning
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from client_runs import make_kept_run
from noisescale.integrations.lightning import NoiseScaleCallback
from noisescale_core.errors import ConfigError
from noisescale_lab.follow.callbacks.lightning import FollowCallback
from scripted_run import log_step

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*"),
    pytest.mark.filterwarnings("ignore:.*number of training batches.*"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated.*:FutureWarning"),  # of torch, in Lightning's use
]

NUM_ROWS, MICRO_BATCH, FIRST_COUNT = 400, 2, 2


@pytest.fixture(autouse=True, scope="module")
def _frozen_modules():
    """The Trainer collects garbage, each time through all that it has loaded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class OneWeight(lightning.LightningModule):
    """Sees rows by their number, and writes the noise scale of each step."""

    def __init__(self, run, phi, is_manual=False):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.run, self.phi = run, phi
        self.automatic_optimization = not is_manual
        self.seen, self.rows, self.rates = [], [], []

    def training_step(self, rows, batch_index):
        self.seen += rows.tolist()
        return (self.weight - rows.float()).square().mean()

    def on_before_optimizer_step(self, optimizer):
        log_step(self.run, self.phi, self.trainer.global_step, 0.05)
        self.rows.append(self.seen)
        self.rates.append(optimizer.param_groups[0]["lr"])
        self.seen = []

    def configure_optimizers(self):
        optimizer = torch.optim.SGD([self.weight], lr=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.999**step)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def fit(tmp_path, phi=4096.0, resume=None, follow=None, max_epochs=2, num_rows=NUM_ROWS, is_manual=False):
    run, _ = make_kept_run()
    module = OneWeight(run, phi, is_manual)
    defaults = {"price": 16.0, "largest": 64, "dry_run": False, "progress": lambda _: None}
    callback = FollowCallback(run, micro_batch=MICRO_BATCH, **(defaults | (follow or {})))
    trainer = lightning.Trainer(
        accelerator="cpu", default_root_dir=tmp_path, callbacks=[callback], max_epochs=max_epochs,
        accumulate_grad_batches=1 if is_manual else FIRST_COUNT, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, logger=False,
    )  # fmt: skip
    trainer.fit(module, DataLoader(range(num_rows), batch_size=MICRO_BATCH), ckpt_path=resume)
    return trainer, module, callback.follower


def sizes_by_decisions(follower, num_steps, num_rows=NUM_ROWS, first=MICRO_BATCH * FIRST_COUNT):
    """Rows of each step: as decided, but for those that end with an epoch."""
    changes = {decision.step: decision.to_batch for decision in follower.decisions}
    expected, now, in_epoch = [], first, 0
    while len(expected) < num_steps:
        expected.append(min(now, num_rows - in_epoch))
        in_epoch = (in_epoch + expected[-1]) % num_rows
        now = changes.get(len(expected), now)
    return expected


@pytest.mark.thorough
def test_steps_grow_by_whole_micro_batches_and_every_row_is_seen_once_an_epoch(tmp_path):
    trainer, module, follower = fit(tmp_path)

    sizes = [len(rows) for rows in module.rows]
    assert len(follower.decisions) >= 2
    assert sizes == sizes_by_decisions(follower, len(sizes))
    every_row = list(itertools.chain.from_iterable(module.rows))
    assert sorted(every_row[:NUM_ROWS]) == sorted(every_row[NUM_ROWS:]) == list(range(NUM_ROWS))
    assert trainer.accumulate_grad_batches == FIRST_COUNT


def test_steps_may_shrink_too(tmp_path):
    _, module, follower = fit(tmp_path, phi=0.25, follow={"price": 1.0}, max_epochs=1)

    sizes = [len(rows) for rows in module.rows]
    assert sizes[-1] == MICRO_BATCH
    assert sizes == sizes_by_decisions(follower, len(sizes))
    assert sum(sizes) == NUM_ROWS


def test_the_rate_is_the_module_s_schedule_times_the_factor(tmp_path):
    _, module, follower = fit(tmp_path)

    factors = [1.0] * len(module.rates)
    for decision in follower.decisions:
        factors[decision.step :] = [decision.to_rate_factor] * (len(factors) - decision.step)
    assert factors[-1] > 1
    assert module.rates == pytest.approx([0.01 * 0.999**step * factor for step, factor in enumerate(factors)])


def test_a_resumed_training_goes_on_with_its_decisions(tmp_path):
    trainer, module, follower = fit(tmp_path, max_epochs=1)
    trainer.save_checkpoint(tmp_path / "after-an-epoch.ckpt")

    _, resumed, after = fit(tmp_path, resume=tmp_path / "after-an-epoch.ckpt", max_epochs=2)

    assert len(follower.decisions) >= 1
    assert after.decisions[: len(follower.decisions)] == follower.decisions
    assert len(resumed.rows[0]) == follower.batch_size
    assert resumed.rates[0] == pytest.approx(module.rates[-1] * 0.999)


def test_what_a_trainer_cannot_do_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="manual optimization sets its own steps"):
        fit(tmp_path, is_manual=True)
    with pytest.raises(ConfigError, match="put NoiseScaleCallback before FollowCallback"):
        FollowCallback(NoiseScaleCallback(), micro_batch=2)._run()
