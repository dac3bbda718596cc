"""`NoiseScaleCallback` in the real `Trainer`, on tiny models made from a config, against gradients computed by hand."""

import gc

import pytest
import torch
from torch import nn
from transformers import (
    Trainer,
    TrainingArguments,
)

from client_runs import make_kept_run
from noisescale.integrations.huggingface import LOSS_OUTSIDE, NoiseScaleCallback
from noisescale.run import active_run
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags
from trainer_runs import (
    LENGTH,
    MICRO_BATCH_SIZE,
    NUM_MICRO_BATCHES,
    SeenSteps,
    gradient_of,
    make_gpt2,
    make_llama,
    make_sequences,
    terms,
    token_mean_loss,
)


@pytest.fixture(autouse=True, scope="module")
def _frozen_modules():
    """The Trainer collects garbage several times, each time through all that transformers has loaded."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def train(tmp_path, model, rows, *, callback_arguments=None, trainer_arguments=None, callbacks=(), resume=None, **args):
    run, kept = make_kept_run()
    callback = NoiseScaleCallback(run=run, **(callback_arguments or {}))
    seen = SeenSteps()
    defaults = {
        "per_device_train_batch_size": MICRO_BATCH_SIZE,
        "gradient_accumulation_steps": NUM_MICRO_BATCHES,
        "max_steps": 3,
        "learning_rate": 0.01,
        "max_grad_norm": 0.01,
        "logging_steps": 1,
        "save_strategy": "no",
    }
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        **defaults | args,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        data_collator=seen.collate,
        callbacks=[callback, seen, *callbacks],
        **trainer_arguments or {},
    )
    trainer.train(resume_from_checkpoint=resume)
    return trainer, seen, kept


# ---- the same by hand


def by_hand(seen, loss_of=token_mean_loss):
    """The terms of each step, whose gradient is the mean over the tokens of all its micro-batches."""
    found = []
    for model, batches in zip(seen.models, seen.micro_batches, strict=False):
        counts = [int((batch["labels"][:, 1:] != -100).sum()) for batch in batches]
        gradients = [gradient_of(model, loss_of(model, batch)) for batch in batches]
        found.append(terms(gradients, [count / sum(counts) for count in counts], len(batches) * MICRO_BATCH_SIZE))
    return found


def measured(kept):
    return [(row.sum_trace_cov, row.sum_grad_sq_norm) for row in kept.rows()]


def assert_equal(kept, expected, rel=1e-4):
    assert len(kept.rows()) == len(expected)
    for row, (trace_cov, grad_sq_norm) in zip(kept.rows(), expected, strict=True):
        assert row.flags & ~Flags.UNEQUAL_MICRO_BATCHES == 0
        assert row.sum_trace_cov == pytest.approx(trace_cov, rel=rel)
        # A small difference of two large numbers: accurate as they are.
        assert row.sum_grad_sq_norm == pytest.approx(grad_sq_norm, abs=rel * trace_cov / row.global_batch)


@pytest.mark.thorough
def test_a_language_model_is_measured_by_tokens_and_before_clipping(tmp_path):
    _, seen, kept = train(tmp_path, make_llama(), make_sequences())

    assert_equal(kept, by_hand(seen))
    assert [(row.step, row.global_batch, row.num_micro_batches) for row in kept.rows()] == [
        (0, 8, 4),
        (1, 8, 4),
        (2, 8, 4),
    ]


def test_the_loss_of_the_step_is_its_mean_over_tokens(tmp_path):
    trainer, _, kept = train(tmp_path, make_llama(), make_sequences())

    logged = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    assert [row.sum_loss for row in kept.rows()] == pytest.approx(logged)


def test_first_labels_that_the_trainer_counts_and_the_loss_does_not_leave_the_noise_scale_as_it_is(tmp_path):
    """transformers 5.23 overlooks that the loss of GPT-2 shifts its labels, so its gradient is smaller by a factor."""
    _, seen, kept = train(tmp_path, make_gpt2(), make_sequences())

    for row, (trace_cov, grad_sq_norm), batches in zip(kept.rows(), by_hand(seen), seen.micro_batches, strict=False):
        in_loss = sum(int((batch["labels"][:, 1:] != -100).sum()) for batch in batches)
        in_divisor = sum(int((batch["labels"] != -100).sum()) for batch in batches)
        factor = (in_loss / in_divisor) ** 2
        assert factor < 0.95
        assert row.sum_trace_cov == pytest.approx(factor * trace_cov, rel=1e-4)
        assert row.sum_grad_sq_norm / row.sum_trace_cov == pytest.approx(grad_sq_norm / trace_cov, rel=1e-2)


def test_label_smoothing_is_measured_though_the_model_never_sees_the_labels(tmp_path):
    _, seen, kept = train(tmp_path, make_llama(), make_sequences(), label_smoothing_factor=0.1)

    assert_equal(kept, by_hand(seen, lambda model, batch: token_mean_loss(model, batch, smoothing=0.1)))


def test_a_loss_function_of_ones_own_is_measured_by_the_tokens_it_counts(tmp_path):
    def sum_over_tokens(outputs, labels, num_items_in_batch):
        logits = outputs.logits[:, :-1].flatten(0, 1)
        return nn.functional.cross_entropy(logits, labels[:, 1:].flatten(), reduction="sum") / num_items_in_batch

    _, seen, kept = train(
        tmp_path, make_llama(), make_sequences(), trainer_arguments={"compute_loss_func": sum_over_tokens}
    )

    assert_equal(kept, by_hand(seen))


def test_bf16_is_measured_as_it_is_computed(tmp_path):
    def under_autocast(model, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return token_mean_loss(model, batch)

    _, seen, kept = train(tmp_path, make_llama(), make_sequences(), bf16=True)

    assert_equal(kept, by_hand(seen, under_autocast), rel=1e-2)


def test_gradient_checkpointing_changes_nothing(tmp_path):
    _, seen, kept = train(tmp_path, make_llama(), make_sequences(), activation_checkpointing=True)

    assert_equal(kept, by_hand(seen))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")  # of the compiler
def test_a_compiled_model_is_measured_and_compiled_as_one_graph(tmp_path):
    torch._dynamo.reset()

    _, seen, kept = train(tmp_path, make_llama(), make_sequences(), torch_compile=True, torch_compile_backend="eager")

    assert_equal(kept, by_hand(seen))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


# ---- a model without `**kwargs`: each micro-batch's own mean, all weighing the same


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, inputs, labels=None):
        logits = self.layers(inputs)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"logits": logits} if loss is None else {"loss": loss, "logits": logits}


def make_rows(num):
    generator = torch.Generator().manual_seed(1)
    inputs, labels = torch.randn(num, 4, generator=generator), torch.randint(0, 3, (num,), generator=generator)
    return [{"inputs": x, "labels": y} for x, y in zip(inputs, labels, strict=True)]


def equally_weighted_terms(gradients, sizes):
    """From E|g_k|² = |G|² + tr Σ / n_k and E|mean g_k|² = |G|² + tr Σ mean(1 / n_k) / K."""
    mean = sum(gradients) / len(gradients)
    mean_inverse_size = sum(1 / size for size in sizes) / len(sizes)
    spread = sum(g @ g for g in gradients) / len(gradients) - mean @ mean
    trace_cov = spread / mean_inverse_size * len(gradients) / (len(gradients) - 1)
    return float(trace_cov), float(mean @ mean - trace_cov * mean_inverse_size / len(gradients))


def test_a_model_that_takes_no_item_count_is_measured_by_its_means(tmp_path):
    """31 rows: the last micro-batch of the epoch has one example."""
    _, seen, kept = train(tmp_path, Classifier(), make_rows(31), max_steps=-1, num_train_epochs=1)

    assert [(row.global_batch, row.num_micro_batches) for row in kept.rows()] == [(8, 4), (8, 4), (8, 4), (7, 4)]
    for row, model, batches in zip(kept.rows(), seen.models, seen.micro_batches, strict=True):
        gradients = [gradient_of(model, model(**batch)["loss"]) for batch in batches]
        trace_cov, grad_sq_norm = equally_weighted_terms(gradients, [len(batch["labels"]) for batch in batches])
        assert row.sum_trace_cov == pytest.approx(trace_cov, rel=1e-4)
        assert row.sum_grad_sq_norm == pytest.approx(grad_sq_norm, abs=1e-4 * trace_cov)


def test_a_loss_outside_of_such_a_model_needs_a_word_on_its_weights(tmp_path, caplog):
    def mean_loss(outputs, labels, num_items_in_batch):
        return nn.functional.cross_entropy(outputs["logits"], labels)

    train(tmp_path, Classifier(), make_rows(30), trainer_arguments={"compute_loss_func": mean_loss})
    assert [record.message for record in caplog.records if record.name == "noisescale"].count(LOSS_OUTSIDE) == 1
    caplog.clear()
    train(
        tmp_path,
        Classifier(),
        make_rows(30),
        trainer_arguments={"compute_loss_func": mean_loss},
        callback_arguments={"weighting": "equal"},
    )

    assert LOSS_OUTSIDE not in caplog.text


# ---- the life of a training


def test_training_is_the_same_bit_for_bit(tmp_path):
    watched, _, _ = train(tmp_path, make_llama(), make_sequences())
    plain = Trainer(
        model=make_llama(),
        args=watched.args,
        train_dataset=make_sequences(),
        data_collator=SeenSteps().collate,
    )
    plain.train()

    for (name, with_us), without in zip(watched.model.named_parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(with_us, without), name
    assert not watched.model._forward_hooks
    assert not any(parameter._backward_hooks for parameter in watched.model.parameters())


def test_evaluations_in_between_do_not_count_and_their_metrics_are_kept(tmp_path):
    rows = make_sequences()

    _, _, kept = train(
        tmp_path,
        make_llama(),
        rows,
        trainer_arguments={"eval_dataset": rows[:4]},
        eval_strategy="steps",
        eval_steps=1,
        per_device_eval_batch_size=4,
    )

    assert [row.flags & Flags.UNMATCHED_GRADIENT for row in kept.rows()] == [0, 0, 0]
    assert [row.global_batch for row in kept.rows()] == [8, 8, 8]
    assert [metric.step for metric in kept.metrics()] == [0, 1, 2]
    assert kept.metrics()[0].values["eval_loss"] > 0


def test_the_numbers_are_in_the_log_of_each_training_step(tmp_path):
    trainer, _, _ = train(tmp_path, make_llama(), make_sequences())

    entries = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [entry["noisescale/state"] for entry in entries] == [0.0, 0.0, 0.0]


def test_a_resumed_training_goes_on_at_its_step(tmp_path):
    rows = make_sequences()
    train(tmp_path, make_llama(), rows, save_strategy="steps", save_steps=2, max_steps=2)

    _, _, kept = train(tmp_path, make_llama(), rows, max_steps=4, resume=str(tmp_path / "checkpoint-2"))

    assert [row.step for row in kept.rows()] == [2, 3]


def test_without_accumulation_each_example_is_a_small_batch_and_the_way_out_is_said_once(tmp_path, caplog):
    caplog.set_level("INFO", logger="noisescale")

    _, _, kept = train(tmp_path, make_llama(), make_sequences(), gradient_accumulation_steps=1)

    said = [record.message for record in caplog.records if "accumulate micro-batches" in record.message]
    assert len(said) == 1
    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].num_micro_batches) == (None, 1)
    assert kept.rows()[1].num_micro_batches == MICRO_BATCH_SIZE
    assert kept.rows()[1].sum_trace_cov > 0


def test_it_makes_a_run_of_its_own_describes_it_and_finishes_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setattr(active_run, "_active", [])
    callback = NoiseScaleCallback(project="tiny", task="tokens", unit="tokens", units_per_example=LENGTH)
    arguments = TrainingArguments(
        output_dir=str(tmp_path),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        max_steps=9,
        logging_steps=9,
        run_name="mine",
    )

    Trainer(model=make_llama(), args=arguments, train_dataset=make_sequences(80), callbacks=[callback]).train()

    run = callback.run
    assert run.is_finished
    assert repr(run).startswith("<noisescale.Run tiny/tokens ")
    assert run.noise_scale().num_updates == 9


class Arguments:
    n_gpu = 1
    deepspeed = None


@pytest.mark.parametrize(
    ("name", "value", "way_out"), [("n_gpu", 4, "torchrun"), ("deepspeed", "zero.json", "log_norms")]
)
def test_jobs_that_hide_their_gradients_are_refused_with_the_way_out(name, value, way_out, monkeypatch):
    monkeypatch.setattr(Arguments, name, value)

    with pytest.raises(ConfigError, match=way_out):
        NoiseScaleCallback().on_train_begin(Arguments(), None, None, None, None)
