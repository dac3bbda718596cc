"""The product's band against exact truth: SDK, wire, Postgres, pyramid, REST and estimators in one."""

import statistics
from dataclasses import replace

import httpx
import pytest
import torch

from app_in_process import AS_LOCAL_USER
from demo import digits
from demo.train import PLANS, train
from digits_truth import IMAGES_NI, LABELS_N, exact_terms

pytestmark = [pytest.mark.slow, pytest.mark.processes]

STEPS_PER_WINDOW = 40
WINDOWS = 20


def test_the_closed_form_is_the_autograd_gradient():
    torch.manual_seed(3)
    model = digits.make_model()
    images, labels = IMAGES_NI[:40], LABELS_N[:40]
    per_example = torch.stack(
        [gradient(model, image[None], label[None]) for image, label in zip(images, labels, strict=True)]
    )

    trace_cov, grad_sq_norm = exact_terms(model, images, labels)

    mean = per_example.mean(0)
    assert grad_sq_norm == pytest.approx(float(mean @ mean), rel=1e-5)
    assert trace_cov == pytest.approx(float(((per_example - mean) ** 2).sum(1).mean()), rel=1e-5)


def test_the_band_of_a_real_run_holds_the_exact_ratio_of_its_window(live_server):
    """Of 20 disjoint windows of 40 steps: at least 17 hold the truth, 15 are bounded, and the bands are narrow."""
    torch.set_num_threads(1)
    truth = []
    plan = next(p for p in PLANS if (p.task, p.batch_size) == ("digits", 256))
    task = digits.make_task()

    def make_optimizer(model, learning_rate):
        optimizer = task.make_optimizer(model, learning_rate)
        optimizer.register_step_pre_hook(lambda *_: truth.append(exact_terms(model)))
        return optimizer

    train(
        replace(task, make_optimizer=make_optimizer), replace(plan, steps=STEPS_PER_WINDOW * WINDOWS), lambda *_: None
    )
    run_id = httpx.get(f"{live_server}/api/v1/runs", headers=AS_LOCAL_USER).json()["runs"][0]["id"]
    windows = [band(live_server, run_id, window) for window in range(WINDOWS)]
    exact = [window_ratio(truth, window) for window in range(WINDOWS)]

    held = sum(holds(low, high, ratio) for (low, high), ratio in zip(windows, exact, strict=True))
    widths = [high / low for low, high in windows if high is not None and low]
    assert held >= 17
    assert len(widths) >= 15
    assert statistics.median(widths) <= 4


def gradient(model, images, labels):
    parts = torch.autograd.grad(digits.loss(model, (images, labels)), list(model.parameters()))
    return torch.cat([part.flatten() for part in parts]).double()


def band(url, run_id, window):
    first = window * STEPS_PER_WINDOW
    query = {"from": first, "to": first + STEPS_PER_WINDOW - 1, "window": STEPS_PER_WINDOW, "points": 1}
    points = (
        httpx.get(f"{url}/api/v1/runs/{run_id}/noise-scale", headers=AS_LOCAL_USER, params=query)
        .raise_for_status()
        .json()["points"]
    )
    assert points["num_updates"][-1] == STEPS_PER_WINDOW
    return points["low"][-1], points["high"][-1]


def window_ratio(truth, window):
    steps = truth[window * STEPS_PER_WINDOW : (window + 1) * STEPS_PER_WINDOW]
    assert len(steps) == STEPS_PER_WINDOW
    return sum(trace for trace, _ in steps) / sum(grad for _, grad in steps)


def holds(low, high, ratio):
    return (low is None or low <= ratio) and (high is None or ratio <= high)
