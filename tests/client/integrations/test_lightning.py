"""`NoiseScaleCallback` in the real `lightning.Trainer` on the CPU, against gradients computed by hand."""

import copy
import gc

import lightning
import pytest
import pytorch_lightning
import torch
from torch import nn
from torch.utils.data import DataLoader

from client_runs import brute_force_terms, gradient_of_each, make_batch, make_kept_run, make_model
from noisescale import Loss
from noisescale.integrations.lightning import NoiseScaleCallback
from noisescale.run import active_run
from noisescale_core.errors import ConfigError

# what Lightning says about small examples: no loader workers, no validation, few batches
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers.*"),
    pytest.mark.filterwarnings("ignore:.*number of training batches.*"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated.*:FutureWarning"),  # of torch, in Lightning's use
]


@pytest.fixture(autouse=True, scope="module")
def _frozen_modules():
    """The Trainer collects garbage, each time through all that it has loaded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def make_module(base):
    """A classifier for `lightning.LightningModule` or that of the older package."""

    class Classifier(base):
        def __init__(self):
            super().__init__()
            self.model = make_model()
            self.before = []

        def training_step(self, batch, batch_index):
            inputs, classes = batch
            return nn.functional.cross_entropy(self.model(inputs), classes)

        def on_train_batch_start(self, batch, batch_index):
            if batch_index % 4 == 0:
                self.before.append(copy.deepcopy(self.model))

        def configure_optimizers(self):
            return torch.optim.SGD(self.model.parameters(), lr=0.1)

    return Classifier()


def make_loader(num_examples=32):
    inputs, classes = make_batch(32)
    pairs = list(zip(inputs[:num_examples], classes[:num_examples], strict=True))
    return DataLoader(pairs, batch_size=4)


def fit(tmp_path, module=None, package=lightning, callback_arguments=None, num_examples=32, **settings):
    module = module or make_module(lightning.LightningModule)
    run, kept = make_kept_run()
    callback = NoiseScaleCallback(run=run, **callback_arguments or {})
    automatic = {"accumulate_grad_batches": 4, "gradient_clip_val": 0.01} if module.automatic_optimization else {}
    trainer = package.Trainer(
        accelerator="cpu",
        default_root_dir=tmp_path,
        callbacks=[callback],
        max_epochs=1,
        log_every_n_steps=1,
        enable_checkpointing=settings.pop("enable_checkpointing", False),
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
        **automatic | settings,
    )
    trainer.fit(module, make_loader(num_examples))
    return trainer, module, kept


def by_hand(model, first=0, num_examples=16):
    """The terms and the loss of a step with these examples, in micro-batches of four."""
    inputs, classes = (part[first : first + num_examples] for part in make_batch(32))
    each = gradient_of_each(model, inputs, classes)
    loss = nn.functional.cross_entropy(model(inputs), classes).item()
    return *brute_force_terms(list(each.values()), [4] * (num_examples // 4)), loss


def assert_steps(kept, module, rel=1e-4):
    first, second = kept.rows()
    for row, model, start in ((first, module.before[0], 0), (second, module.before[1], 16)):
        trace_cov, grad_sq_norm, loss = by_hand(model, start)
        assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx((trace_cov, grad_sq_norm), rel=rel)
        assert row.sum_loss == pytest.approx(loss, rel=rel)
    assert [(row.step, row.global_batch, row.num_micro_batches) for row in kept.rows()] == [(0, 16, 4), (1, 16, 4)]


@pytest.mark.thorough
@pytest.mark.parametrize("package", [lightning, pytorch_lightning])
def test_accumulated_steps_are_measured_before_clipping(tmp_path, package):
    _, module, kept = fit(tmp_path, make_module(package.LightningModule), package)

    assert_steps(kept, module)


def test_the_scaler_of_mixed_precision_is_undone_though_the_gradients_are_unscaled_first(tmp_path):
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    precision = lightning.pytorch.plugins.MixedPrecision("16-mixed", "cpu", scaler)

    _, module, kept = fit(tmp_path, plugins=[precision], gradient_clip_val=0.01)

    assert_steps(kept, module, rel=0.05)


def test_an_epoch_that_ends_within_a_step_leaves_the_noise_scale_right_and_the_terms_smaller(tmp_path):
    """Two of a step's four micro-batches, each still divided by four: half the gradient."""
    _, module, kept = fit(tmp_path, num_examples=8)

    trace_cov, grad_sq_norm, _ = by_hand(module.before[0], num_examples=8)
    [row] = kept.rows()
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx((trace_cov / 4, grad_sq_norm / 4), rel=1e-4)
    assert row.global_batch == 8


def test_training_is_the_same_bit_for_bit_and_no_hook_is_left(tmp_path):
    _, watched, _ = fit(tmp_path)
    plain = make_module(lightning.LightningModule)
    trainer = lightning.Trainer(
        accelerator="cpu", default_root_dir=tmp_path, max_epochs=1, accumulate_grad_batches=4, gradient_clip_val=0.01,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, logger=False,
    )  # fmt: skip
    trainer.fit(plain, make_loader())

    for with_us, without in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(with_us, without)
    assert not any(parameter._backward_hooks for parameter in watched.parameters())


def test_the_numbers_are_logged_with_those_of_the_module(tmp_path):
    trainer, _, _ = fit(tmp_path)

    assert trainer.logged_metrics["noisescale/state"] == 0.0


def test_a_resumed_training_goes_on_at_its_step(tmp_path):
    trainer, _, _ = fit(tmp_path)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    run, kept = make_kept_run()
    resumed = lightning.Trainer(
        accelerator="cpu", default_root_dir=tmp_path, max_epochs=2, accumulate_grad_batches=4,
        callbacks=[NoiseScaleCallback(run=run)],
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, logger=False,
    )  # fmt: skip

    resumed.fit(make_module(lightning.LightningModule), make_loader(), ckpt_path=tmp_path / "last.ckpt")

    assert [row.step for row in kept.rows()] == [2, 3]


# ---- manual optimization


class TwoModels(lightning.LightningModule):
    """Two models with an optimizer each; a step of the second comes after every other batch only."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.first, self.second = make_model(0), make_model(1)
        self.second_before = None

    def training_step(self, batch, batch_index):
        inputs, classes = batch
        first, second = self.optimizers()
        for x, y in zip(inputs.split(2), classes.split(2), strict=True):
            self.manual_backward(nn.functional.cross_entropy(self.first(x), y) / 2)
        first.step()
        first.zero_grad()
        if self.second_before is None:
            self.second_before = copy.deepcopy(self.second)
        self.manual_backward(nn.functional.cross_entropy(self.second(inputs), classes) / 2)
        if batch_index % 2:
            second.step()
            second.zero_grad()

    def configure_optimizers(self):
        return [torch.optim.SGD(part.parameters(), lr=0.1) for part in (self.first, self.second)]


def test_each_of_several_optimizers_is_measured_by_itself(tmp_path):
    _, module, kept = fit(tmp_path, TwoModels(), callback_arguments={"optimizers": ("first", "second")})

    [beside] = kept.others.values()
    inputs, classes = (part[:8] for part in make_batch(32))
    each = gradient_of_each(module.second_before, inputs, classes)
    expected = brute_force_terms(list(each.values()), [4, 4])
    row = beside.rows()[0]
    assert [(row.global_batch, row.num_micro_batches) for row in kept.rows()] == [(4, 2)] * 8
    assert [(row.global_batch, row.num_micro_batches) for row in beside.rows()] == [(8, 2)] * 4
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx(expected, rel=1e-4)


def test_names_that_do_not_fit_the_optimizers_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="2 names"):
        fit(tmp_path, TwoModels(), callback_arguments={"optimizers": ("only",)})


# ---- the run


class Breaks(lightning.pytorch.Callback):
    def on_train_batch_end(self, trainer, *_):
        raise ArithmeticError


@pytest.mark.parametrize(("others", "status"), [([], "finished"), ([Breaks()], "failed")])
def test_it_makes_a_run_of_its_own_and_finishes_it_as_the_training_ends(tmp_path, monkeypatch, others, status):
    finished = []
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setattr(active_run, "_active", [])
    monkeypatch.setattr("noisescale.run.run.Run.finish", lambda run, status="finished": finished.append((run, status)))
    callback = NoiseScaleCallback(project="tiny", task="classes")
    trainer = lightning.Trainer(
        accelerator="cpu", default_root_dir=tmp_path, max_epochs=1, callbacks=[callback, *others],
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, logger=False,
    )  # fmt: skip

    if others:
        with pytest.raises(ArithmeticError):
            trainer.fit(make_module(lightning.LightningModule), make_loader())
    else:
        trainer.fit(make_module(lightning.LightningModule), make_loader())

    assert repr(callback.run).startswith("<noisescale.Run tiny/classes ")
    assert finished == [(callback.run, status)]
    monkeypatch.undo()
    callback.run.finish()


def test_what_is_said_of_the_loss_leaves_how_lightning_weighs_micro_batches():
    for said in ({"loss_reduction": "sum"}, {"loss": Loss(reduction="sum")}):
        callback = NoiseScaleCallback(watch=said)

        assert callback._watch_options["loss"] == Loss("sum", "equal")
