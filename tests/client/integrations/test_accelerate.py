"""The helper for Accelerate in real loops, against the plain loop and against gradients computed by hand."""

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState
from torch import nn
from torch.utils.data import DataLoader

from client_runs import brute_force_terms, gradient_of_each, make_batch, make_kept_run, make_model
from noisescale.integrations.accelerate import watch
from noisescale_core.errors import ConfigError


@pytest.fixture(autouse=True)
def _fresh_state():
    """Accelerate keeps its settings for the whole process."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def train(num_examples=32, *, num_accumulated=4, max_norm=0.01, run_arguments=None, batch_sizes=True, **settings):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=num_accumulated, **settings)
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs, classes = (part[:num_examples] for part in make_batch(32))
    loader = DataLoader(list(zip(inputs, classes, strict=True)), batch_size=4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    run, kept = make_kept_run()
    noise = watch(accelerator, model, optimizer, run=run, **run_arguments or {})
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            noise.log_gradients(loss, batch_size=len(x) if batch_sizes else None)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()
    return kept


def by_hand(num_examples=16):
    """The terms and the loss of the first step, in micro-batches of four examples."""
    inputs, classes = make_batch(32)
    inputs, classes = inputs[:num_examples], classes[:num_examples]
    each = gradient_of_each(make_model(), inputs, classes)
    loss = nn.functional.cross_entropy(make_model()(inputs), classes).item()
    return *brute_force_terms(list(each.values()), [4] * (num_examples // 4)), loss


@pytest.mark.parametrize("batch_sizes", [True, False])
def test_each_accumulated_step_is_measured_before_clipping(batch_sizes):
    kept = train(batch_sizes=batch_sizes)

    trace_cov, grad_sq_norm, loss = by_hand()
    first, second = kept.rows()
    assert (first.sum_trace_cov, first.sum_grad_sq_norm) == pytest.approx((trace_cov, grad_sq_norm), rel=1e-4)
    assert first.sum_loss == pytest.approx(loss)
    assert (first.global_batch, first.num_micro_batches, second.step) == (16, 4, 1)


def test_bf16_is_measured_as_it_is_computed():
    row = train(mixed_precision="bf16").rows()[0]

    trace_cov, grad_sq_norm, _ = by_hand()
    assert row.sum_trace_cov == pytest.approx(trace_cov, rel=0.05)
    assert row.sum_grad_sq_norm == pytest.approx(grad_sq_norm, rel=0.05)


def test_a_loader_that_ends_within_a_step_leaves_the_noise_scale_right_and_the_terms_smaller():
    """Two of a step's four micro-batches, each still divided by four: half the gradient."""
    [row] = train(8).rows()

    trace_cov, grad_sq_norm, _ = by_hand(8)
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx((trace_cov / 4, grad_sq_norm / 4), rel=1e-4)
    assert (row.global_batch, row.num_micro_batches) == (8, 2)


def test_the_scaler_of_the_accelerator_is_undone():
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    accelerator.scaler = scaler
    model = make_model()
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    run, kept = make_kept_run()
    noise = watch(accelerator, model, optimizer, run=run)

    inputs, classes = make_batch(32)
    for x, y in zip(inputs[:16].split(4), classes[:16].split(4), strict=True):
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            noise.log_gradients(loss, batch_size=4)
            optimizer.step()
            optimizer.zero_grad()

    trace_cov, grad_sq_norm, loss = by_hand()
    [row] = kept.rows()
    assert (row.sum_trace_cov, row.sum_grad_sq_norm) == pytest.approx((trace_cov, grad_sq_norm), rel=1e-4)
    assert row.sum_loss == pytest.approx(loss)


def test_jobs_that_hide_their_gradients_are_refused_with_the_way_out():
    class Deepspeed:
        distributed_type = "DistributedType.DEEPSPEED"

    with pytest.raises(ConfigError, match="log_norms"):
        watch(Deepspeed(), make_model(), None)
