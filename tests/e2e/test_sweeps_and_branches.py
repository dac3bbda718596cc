"""A sweep and a branch of real little trainings, through the SDK, a server process and REST."""

import httpx
import pytest
import torch
from torch import nn

import noisescale
import noisy_quadratic
from app_in_process import AS_LOCAL_USER

pytestmark = pytest.mark.processes


@pytest.mark.slow
def test_a_sweep_sends_its_curves_and_comes_back_with_the_critical_batch(live_server):
    said = []

    result = noisescale.sweep(
        noisy_quadratic.train,
        [32, 128, 512, 2048],
        target=noisy_quadratic.TARGET,
        labels=noisescale.Labels(project="sweeps", task="quadratic", optimizer="SGD"),
        progress=said.append,
    )

    (found,) = result.critical_batches
    critical = found["fit"]["critical_batch"]
    exact = exact_critical_batch()
    assert critical["low"] < exact < critical["high"]
    assert f"B_crit {critical['value']:,.4g}" in said[-1]
    stored = httpx.get(f"{live_server}/api/v1/sweeps/{result.sweep_id}", headers=AS_LOCAL_USER).json()
    assert stored["num_runs"] == len(stored["runs"]) == result.cost.num_runs
    own = {point.batch_size: point.steps.steps for point in result.points}
    assert {point["batch_size"]: pytest.approx(point["steps"], rel=1e-6) for point in found["points"]} == own


def exact_critical_batch():
    """E_min / S_min of the expected loss: the steps of a huge batch, the examples of a tiny one."""
    min_steps = noisy_quadratic.exact_best_steps(1e9)
    return noisy_quadratic.exact_best_steps(2) * 2 / min_steps


def test_without_a_server_the_steps_are_there_and_the_reason_is_said():
    result = noisescale.sweep(
        noisy_quadratic.train, [512, 2048], target=noisy_quadratic.TARGET, learning_rates=[0.8, 1.2],
        delivery=noisescale.Delivery(url="http://127.0.0.1:1"), progress=lambda text: None,
    )  # fmt: skip

    assert len(result.points) == 2
    assert result.critical_batches == ()
    assert "no answer from http://127.0.0.1:1" in result.without_fit


@pytest.mark.parametrize("gives_id", [False, True])
def test_runs_that_a_training_logs_into_are_the_runs_of_the_sweep(live_server, gives_id):
    def train(batch_size, lr, seed):
        run = noisescale.init(project="sweeps", task="logged", config={"seed": seed})
        for step, loss in noisy_quadratic.train(batch_size, lr, seed):
            if step > 60:
                break
            if step:
                run.log_metrics(step=step - 1, eval_loss=loss)
        run.finish()
        return run.id if gives_id else run

    result = noisescale.sweep(
        train, [512, 2048], target=1.0, metric="eval_loss", learning_rates=[0.8], seeds=2,
        labels=noisescale.Labels(project="sweeps", task="logged"), progress=lambda text: None,
    )  # fmt: skip

    stored = httpx.get(f"{live_server}/api/v1/sweeps/{result.sweep_id}", headers=AS_LOCAL_USER).json()
    own = {curve.run_id for trial in result.trials for curve in trial.curves}
    assert {run["run_id"] for run in stored["runs"]} == own
    assert all(run["is_stored"] for run in stored["runs"])
    (found,) = result.critical_batches
    steps = {point.batch_size: point.steps.steps for point in result.points}
    assert {point["batch_size"]: pytest.approx(point["steps"], rel=1e-3) for point in found["points"]} == steps


def test_a_branch_is_stored_with_its_run(live_server):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    held_out = [torch.randn(64, 5) for _ in range(8)]

    def loss(rows):
        return nn.functional.mse_loss(model(rows[:, :4])[:, 0], rows[:, :4].sum(1) + rows[:, 4])

    def train_steps(batch_size, lr, num_steps, seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(num_steps):
            optimizer.zero_grad()
            loss(torch.randn(batch_size, 5, generator=generator)).backward()
            optimizer.step()

    with noisescale.init(
        project="sweeps",
        task="linear",
        units=noisescale.Units(unit="rows"),
        machine=noisescale.Machine(usd_per_device_hour=2.0),
    ) as run:
        for _ in range(40):
            run.log_norms(small_batch_size=1, big_batch_size=8, small_sq_norm=2.0, big_sq_norm=1.0, loss=1.0)
        wait_for_run(live_server, run.id)
        result = noisescale.branch(
            train_steps,
            lambda: [loss(rows) for rows in held_out],
            batch_size=8,
            model=model,
            optimizer=optimizer,
            batch_sizes=[16, 32],
            num_examples=256,
            progress=lambda text: None,
        )

    assert result.not_stored is None
    (stored,) = httpx.get(f"{live_server}/api/v1/sweeps", headers=AS_LOCAL_USER, params={"run_id": run.id}).json()[
        "sweeps"
    ]
    assert (stored["id"], stored["kind"], stored["unit"]) == (result.sweep_id, "branch", "rows")
    assert stored["optimizer"] == "SGD"
    assert stored["details"]["meaning"] == result.meaning
    assert stored["details"]["step"] == 39
    assert stored["details"]["noise_scale"]["value"] == pytest.approx(8 / 6)
    local = result.local_critical_batch
    assert stored["details"]["local_critical_batch"] == {"low": local.low, "high": local.high}
    assert stored["details"]["cost"]["usd"] == result.cost.usd == pytest.approx(result.cost.seconds * 2 / 3600)
    runs = httpx.get(f"{live_server}/api/v1/sweeps/{result.sweep_id}", headers=AS_LOCAL_USER).json()["runs"]
    assert [(arm["batch_size"], arm["steps"]) for arm in runs] == [(8, [0, 32]), (16, [0, 16]), (32, [0, 8])]


def wait_for_run(url, run_id):
    """The record that creates the run travels on a thread of its own."""
    transport = httpx.HTTPTransport(retries=0)
    with httpx.Client(base_url=url, headers=AS_LOCAL_USER, transport=transport) as http:
        for _ in range(2_000):
            if http.get(f"/api/v1/runs/{run_id}").status_code == httpx.codes.OK:
                return
    raise AssertionError(f"run {run_id} never arrived")
