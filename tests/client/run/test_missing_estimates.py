"""A noise scale without a number says why, and what would give it one."""

import logging

import pytest
import torch
from torch import nn

from client_runs import make_batch, make_kept_run, make_model
from noisescale.capture.kinds.sign import SignKind
from noisescale.notices.explanations import why_no_estimate, why_no_terms
from noisescale_core.estimators.dual_norm_noise_scale import Bracket
from noisescale_core.estimators.flags import Flags


def watched(**options):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run, kept = make_kept_run(example="sequence")
    run.watch(model, optimizer, **options)
    return run, kept, model, optimizer


def step(run, model, optimizer, *, seed=1, chunks=4):
    inputs, classes = make_batch(16, seed)
    for x, y in zip(inputs.chunk(chunks), classes.chunk(chunks), strict=True):
        (nn.functional.cross_entropy(model(x), y) / chunks).backward()
    run.log_gradients()
    optimizer.step()
    optimizer.zero_grad()


def said(run, kind="simple"):
    return str(run.noise_scale(kind)).removeprefix("not resolved yet: ")


def test_before_the_first_step_nothing_is_blamed_on_the_small_batches():
    run, *_ = watched()

    assert said(run) == "no step was measured so far"


def test_a_rank_that_logs_nothing_sends_one_to_the_first():
    assert why_no_estimate(None, is_silent=True) == "rank 0 has the numbers: ask there"


def test_a_log_after_the_step_is_named():
    run, _, model, optimizer = watched()
    model(make_batch()[0]).sum().backward()
    optimizer.step()

    run.log_gradients()

    assert said(run) == "no step with a backward before log_gradients() so far"


def test_a_changed_gradient_is_named():
    run, _, model, _ = watched()
    inputs, classes = make_batch()
    for x, y in zip(inputs.chunk(4), classes.chunk(4), strict=True):
        (nn.functional.cross_entropy(model(x), y) / 4).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1e-3)

    run.log_gradients()

    assert said(run) == "no step whose gradient is the sum of its backward passes so far, the log says more"


def test_one_backward_a_step_is_named():
    run, _, model, optimizer = watched(small_batches="micro_batches")

    step(run, model, optimizer, chunks=1)

    assert said(run) == "no step with two small batches so far"


def test_adam_says_when_it_begins():
    run, _, model, optimizer = watched(kinds="adam")

    for seed in range(3):
        step(run, model, optimizer, seed=seed)

    assert said(run, "adam") == "kind adam begins after 5 optimizer steps of every parameter that has a gradient"


def test_a_kind_without_small_batches_has_the_reason_of_the_simple_one():
    run, _, model, optimizer = watched(kinds="sign")

    step(run, model, optimizer, chunks=1)

    assert said(run, "sign") == "no step with two small batches so far"


def test_spectral_needs_four_small_batches():
    run, _, model, optimizer = watched(kinds="spectral")

    step(run, model, optimizer, chunks=2)

    assert said(run, "spectral") == "kind spectral needs 4 small batches a step, got 2"


def test_a_kind_that_is_not_measured_says_how_it_would_be():
    run, *_ = watched()

    assert said(run, "sign") == "kind 'sign' is not measured: pass kinds=['sign'] to watch()"
    assert said(run, "hessian") == "kind 'hessian' is not measured: call log_hessian()"


def test_a_kind_that_the_batch_is_too_small_for_says_its_bounds_once(caplog):
    caplog.set_level(logging.INFO)
    run, _, model, optimizer = watched(kinds="sign")

    for seed in range(80):
        step(run, model, optimizer, seed=seed)

    bracket = SignKind.bracket(run._recorders.main.watch._kinds["sign"])
    lines = [record.message for record in caplog.records if record.message.startswith("kind sign")]
    assert len(lines) == 1
    assert lines[0].startswith("kind sign after 32 measured steps: ")
    assert f"{bracket.low:.3g}" in said(run, "sign")
    assert "sequences; a value needs a step of" in said(run, "sign")


@pytest.mark.parametrize(
    ("bracket", "text"),
    [
        (Bracket(100.0, None), "> 100 tokens; a value needs a step of several times as many tokens"),
        (
            Bracket(100.0, 2500.0),
            "between 100 and 2500 tokens; a value needs a step of about 2.00 times as many tokens",
        ),
        (Bracket(100.0, 400.0), "between 100 and 400 tokens; values begin with the next steps"),
        (None, "kind sign begins after 16 measured steps, 9 so far"),
    ],
)
def test_bounds_say_what_is_known_and_what_would_narrow_them(bracket, text):
    said = why_no_terms("sign", num_steps=9, num_small_batches=8, bracket=bracket, examples="tokens")

    assert said == text


@pytest.mark.parametrize("flag", [flag for flag in Flags if flag not in (Flags.NONFINITE_LOSS,)])
def test_every_flag_leaves_a_sentence(flag):
    assert why_no_estimate(int(flag), is_silent=False).startswith("no step")
