"""CartPole by hand, and the actor-critic on it against autograd."""

import math

import pytest
import torch

from noisescale_lab.reproduce.claim.plain_model import plain_model
from noisescale_lab.reproduce.registry import ALL
from noisescale_lab.reproduce.stacked.actor_critic import Fragments, Judge
from noisescale_lab.reproduce.stacked.random_stream import RandomStream, keys
from noisescale_lab.reproduce.tasks import cartpole
from noisescale_lab.reproduce.trainer import Replicas, advance, evaluate


def one_step(x: float, x_dot: float, theta: float, theta_dot: float, force: float) -> list[float]:
    """The equations of gymnasium's CartPole, one cart at a time."""
    temp = (force + 0.05 * theta_dot**2 * math.sin(theta)) / 1.1
    theta_acc = (9.8 * math.sin(theta) - math.cos(theta) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(theta) ** 2 / 1.1))
    x_acc = temp - 0.05 * theta_acc * math.cos(theta) / 1.1
    return [x + 0.02 * x_dot, x_dot + 0.02 * x_acc, theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]


@pytest.mark.parametrize(("is_right", "force"), [(1.0, 10.0), (0.0, -10.0)])
def test_carts_move_by_the_published_equations(is_right: float, force: float) -> None:
    state = [0.3, -0.7, 0.11, 0.9]

    found = cartpole.moved(torch.tensor(state), torch.tensor(is_right))

    assert found.tolist() == pytest.approx(one_step(*state, force), rel=1e-5)


def test_an_episode_that_ends_goes_on_from_the_start_that_was_brought_along() -> None:
    start = [0.01, 0.02, 0.03, 0.04]
    leaning = [0.0, 0.0, 0.2, 3.0, 7.0]
    inputs = torch.tensor([[[0.0, 0.0, *start, *leaning]]])

    played = cartpole.play(lambda rows: torch.zeros(*rows.shape[:-1], 2), inputs)

    assert played.terminated[0, 0].tolist() == [1, 0]
    assert played.observations[0, 0, 1].tolist() == pytest.approx(start)
    assert played.carried[0, 0, -1] == 1


def test_an_episode_is_cut_after_two_hundred_steps_without_being_terminated() -> None:
    inputs = torch.tensor([[[0.0, *[0.01] * 4, 0.0, 0.0, 0.0, 0.0, 199.0]]])

    played = cartpole.play(lambda rows: torch.zeros(*rows.shape[:-1], 2), inputs)

    assert (played.terminated[0, 0, 0], played.ended[0, 0, 0]) == (0, 1)


def test_advantages_are_sums_of_later_surprises_and_stop_where_an_episode_ends() -> None:
    rows = torch.zeros(1, 1, 3, 4)
    flags = torch.tensor([[[0.0, 1.0, 0.0]]])
    played = Fragments(rows, flags, torch.ones(1, 1, 3), rows, flags, flags, rows[:, :, 0])
    values, next_values = torch.tensor([[[1.0, 2.0, 3.0]]]), torch.tensor([[[2.0, 9.0, 4.0]]])

    found = Judge(0.5, 0.8).advantages(played, values, next_values)

    assert found[0, 0].tolist() == pytest.approx([1 + 1 - 1 + 0.4 * -1, 1 - 2, 1 + 2 - 3])


def test_gradients_of_fragments_and_their_norms_are_those_of_autograd() -> None:
    task = ALL["cartpole_pg"]()
    tables, rows = RandomStream().tables([3])
    drawn = keys(tables, rows, torch.zeros(1, 1, dtype=torch.long), 4)
    assert task.carried is not None
    inputs = torch.cat([task.sample(drawn)[0], task.carried.begin(drawn)], -1)
    parameters = task.network.initial([3])

    values = task.network.forward(parameters, inputs)
    derivatives = task.loss(values[-1], inputs)[1]
    found = task.network.backward(parameters, inputs, values, derivatives)

    model = plain_model(task.network, 3)
    per_example = []
    for example in range(4):
        model.zero_grad()
        task.loss(model(inputs[0, example : example + 1])[None], inputs)[0].mean().backward()
        gradients = [one.grad.T if one.ndim == 2 else one.grad for one in model.parameters()]
        per_example.append(torch.cat([one.flatten() for one in gradients]))
    exact = torch.stack(per_example)
    torch.testing.assert_close(found.mean[0], exact.mean(0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.example_sq_norm[0], exact.square().sum(1), rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_episodes_grow_longer_and_weights_that_are_not_finite_have_no_length() -> None:
    task = ALL["cartpole_pg"]()
    replicas = Replicas.new(task, [0, 1, 2, 3])
    before = evaluate(task, replicas.parameters).mean()

    advance(task, RandomStream(), replicas, seeds=[0, 1, 2, 3], learning_rate=[0.2] * 4, batch=16, steps=40)

    assert before < 30
    assert evaluate(task, replicas.parameters).mean() > 3 * before
    replicas.parameters[0, 0] = torch.nan
    assert math.isnan(evaluate(task, replicas.parameters)[0])
