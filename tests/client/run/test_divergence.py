"""A loss or gradients that are not finite are the first thing that a job says."""

import torch

from client_runs import make_batch, make_kept_run, make_model
from noisescale_core.estimators.flags import Flags


def trained(num_steps, *, nan_from, mends_at=None):
    """A job whose loss is NaN from a step on, with its weights."""
    torch.manual_seed(0)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run, kept = make_kept_run()
    run.watch(model, optimizer)
    for step in range(num_steps):
        inputs, classes = make_batch(16, step)
        is_broken = step >= nan_from and (mends_at is None or step < mends_at)
        for x, y in zip(inputs.chunk(8), classes.chunk(8), strict=True):
            loss = torch.nn.functional.cross_entropy(model(x), y) / 8
            (loss * float("nan") if is_broken else loss).backward()
        run.log_gradients(loss=float("nan") if is_broken else float(loss.detach()))
        if not is_broken or mends_at is None:
            optimizer.step()
        optimizer.zero_grad()
    return run, kept


def test_the_printed_noise_scale_is_until_the_step_before_and_says_so_first(caplog):
    run, kept = trained(60, nan_from=40)

    said = str(run.noise_scale())

    assert said.startswith("loss and gradients are not finite since step 40; until step 39: ")
    assert kept.rows()[-1].flags & Flags.NONFINITE_LOSS
    (warning,) = [one for one in caplog.messages if "not finite" in one]
    assert warning.startswith("Loss and gradients are not finite since step 40. The noise scale is until step 39.")
    assert "checkpoint" in warning


def test_the_recommendation_is_about_the_divergence_and_of_no_batch():
    run, _ = trained(60, nan_from=40)

    found = run.recommendation()

    assert (found.decision, found.headline) == ("insufficient_evidence", "Training has diverged")
    assert found.reason == "Loss and gradients are not finite since step 40. The noise scale is until step 39."
    assert (found.recommended_batch_size, found.noise_scale.step) == (None, 39)
    assert "checkpoint" in found.next_step


def test_a_run_that_is_finite_again_is_like_any_other():
    run, _ = trained(60, nan_from=20, mends_at=25)

    assert "not finite" not in str(run.noise_scale())


def test_a_run_that_never_was_finite_has_no_noise_scale_to_speak_of():
    run, _ = trained(12, nan_from=0)

    assert str(run.noise_scale()) == "loss and gradients are not finite since step 0"
