"""Patterns of ordinary programs: each is measured exactly, or has no number and says why; see docs/measuring.md."""

from pathlib import Path

import pytest
import torch

import ordinary_patterns as patterns
from client_runs import make_kept_run, terms_of
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags
from ordinary_patterns import Loop, Pattern, make_mlp

BY_MICRO_BATCHES = {
    "two heads": Pattern(patterns.of_both_heads, patterns.Heads),
    "a teacher without gradients": Pattern(patterns.with_a_teacher),
    "gradient penalty": Pattern(patterns.with_gradient_penalty),
    "evaluation between steps": Pattern(step=patterns.evaluate_between),
    "evaluation between micro-batches": Pattern(step=patterns.evaluate_inside),
    "sharpness-aware minimisation": Pattern(step=patterns.sharpness_aware, tolerance=1e-6),
    "a batch that grows": Pattern(num_examples=(16, 16, 32, 64)),
    "an optimizer's state loaded": Pattern(step=patterns.resume),
    "gradients cleared in place": Pattern(step=patterns.clear_in_place),
    "quantised training": Pattern(make=patterns.make_quantised),
    "spectral normalisation": Pattern(make=patterns.make_spectral),
    "experts": Pattern(make=patterns.Experts, flags=Flags.PARTIAL_GRADIENTS),
    "mixup": Pattern(patterns.of_mixed_examples),
    "contrastive loss of two views": Pattern(patterns.of_two_views, step=patterns.say_the_size),
    "triplets": Pattern(patterns.of_triplets),
    "class weights": Pattern(patterns.with_class_weights),
    "augmented views averaged": Pattern(patterns.of_averaged_views, step=patterns.say_the_size),
    "label smoothing": Pattern(patterns.with_smoothed_labels),
    "a penalty on the weights": Pattern(patterns.with_a_penalty_on_weights),
    "a moving average of the weights": Pattern(step=patterns.average_the_weights),
    "clipped after the log": Pattern(step=patterns.clip_after_the_log),
    "padding": Pattern(patterns.with_padding),
    "dropout": Pattern(make=patterns.make_dropout),
    "recurrent and tied layers": Pattern(make=patterns.Recurrent),
    "checkpointing": Pattern(make=patterns.Checkpointed),
    "LSTM": Pattern(make=patterns.Sequences),
    "PyTorch's encoder": Pattern(make=patterns.Attending),
    "functional_call": Pattern(patterns.by_functional_call),
    "bfloat16": Pattern(patterns.in_bfloat16, lambda: make_mlp().float(), tolerance=0.02),
}
"""Small batches as the program makes them: whatever couples the examples inside one, it is exact."""

BY_EXAMPLES = {
    "two heads": Pattern(patterns.of_both_heads, patterns.Heads, by_examples=True),
    "a teacher without gradients": Pattern(patterns.with_a_teacher, by_examples=True),
    "recurrent and tied layers": Pattern(make=patterns.Recurrent, by_examples=True),
    "checkpointing": Pattern(make=patterns.Checkpointed, by_examples=True),
    "PyTorch's encoder": Pattern(make=patterns.Attending, by_examples=True),
    "LSTM": Pattern(make=patterns.Sequences, by_examples=True),
    "importance weights": Pattern(patterns.by_importance, by_examples=True),
    "augmented views averaged": Pattern(patterns.of_averaged_views, step=patterns.say_the_size, by_examples=True),
    "label smoothing": Pattern(patterns.with_smoothed_labels, by_examples=True),
    "a moving average of the weights": Pattern(step=patterns.average_the_weights, by_examples=True),
    "clipped after the log": Pattern(step=patterns.clip_after_the_log, by_examples=True),
    "bfloat16": Pattern(patterns.in_bfloat16, lambda: make_mlp().float(), by_examples=True, tolerance=0.02),
}

WITHOUT_A_NUMBER = {
    "gradient surgery": Pattern(step=patterns.gradient_surgery),
    "clipped before the log": Pattern(step=patterns.clip_before_the_log),
    "noise added to the gradient": Pattern(step=patterns.add_noise),
    "gradient surgery by examples": Pattern(step=patterns.gradient_surgery, by_examples=True),
    "gradient penalty by examples": Pattern(patterns.with_gradient_penalty, by_examples=True),
    "hooks that change gradients, by examples": Pattern(make=patterns.make_clamped, by_examples=True),
    "quantised training by examples": Pattern(make=patterns.make_quantised, by_examples=True),
    "experts by examples": Pattern(make=patterns.Experts, by_examples=True),
    "a penalty on the weights by examples": Pattern(patterns.with_a_penalty_on_weights, by_examples=True),
}


@pytest.mark.parametrize("name", BY_MICRO_BATCHES)
def test_it_is_measured_exactly_by_micro_batches(name):
    pattern = BY_MICRO_BATCHES[name]
    loop = Loop(pattern)

    truths = loop.steps(5)

    rows = loop.kept.rows()
    assert len(rows) == 5
    for row, truth in zip(rows, truths, strict=True):
        assert terms_of(row) == pytest.approx(truth, rel=pattern.tolerance)
        assert row.flags == pattern.flags


@pytest.mark.parametrize("name", BY_EXAMPLES)
def test_it_is_measured_exactly_by_examples(name):
    pattern = BY_EXAMPLES[name]
    loop = Loop(pattern)

    truths = loop.steps(6)

    first, *measured = [row for row in loop.kept.rows() if row.sum_trace_cov is not None or row.step == 0]
    assert first.flags == Flags.ONE_SMALL_BATCH
    assert measured
    for row in measured:
        assert terms_of(row) == pytest.approx(truths[row.step], rel=pattern.tolerance)
        assert row.flags == 0


@pytest.mark.parametrize("name", WITHOUT_A_NUMBER)
def test_it_has_no_number_and_says_why(name, caplog):
    loop = Loop(WITHOUT_A_NUMBER[name])

    loop.steps(6)

    rows = loop.kept.rows()
    assert all(row.sum_trace_cov is None for row in rows)
    assert rows[0].flags
    assert any(record.levelname == "WARNING" for record in caplog.records)


def test_the_documentation_lists_each_with_its_verdict():
    page = (Path(__file__).parents[3] / "docs" / "measuring.md").read_text()
    table = page.split("## Patterns that were tried")[1].split("## How often")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ")]
    said = {name.strip(): (by_parts.strip(), by_examples.strip()) for name, by_parts, by_examples in rows}

    for name in BY_MICRO_BATCHES:
        assert said[name][0].startswith("right"), name
    for name in BY_EXAMPLES:
        assert said[name][1].startswith("right"), name
    for name in WITHOUT_A_NUMBER:
        is_by_examples = WITHOUT_A_NUMBER[name].by_examples
        assert said[name.removesuffix(" by examples").removesuffix(",")][is_by_examples] == "reason", name


def test_an_optimizer_that_runs_the_backward_itself_is_refused():
    model = make_mlp()
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match="runs backward repeatedly inside step"):
        run.watch(model, torch.optim.LBFGS(model.parameters()))
