import numpy as np
import pytest
import torch
from torch import nn

from noisescale_lab.reproduce.registry import ALL, DESIGN, HELD_OUT
from noisescale_lab.reproduce.stacked.random_stream import LENGTH, RandomStream, fraction, keys, pick
from noisescale_lab.reproduce.trainer import Replicas, advance, evaluate, train


def plain_model(parameters: torch.Tensor) -> nn.Module:
    """The digits autoencoder in plain PyTorch with one replica's weights."""
    sizes = [(64, 32), (32, 16), (16, 32), (32, 64)]
    layers = [nn.Linear(*size) for size in sizes]
    offset = 0
    with torch.no_grad():
        for layer, (inputs, outputs) in zip(layers, sizes, strict=True):
            end = offset + inputs * outputs
            layer.weight.copy_(parameters[offset:end].view(inputs, outputs).T)
            layer.bias.copy_(parameters[end : end + outputs])
            offset = end + outputs
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], layers[2], nn.Tanh(), layers[3])


def test_a_replica_trains_as_plain_pytorch_does_with_adam():
    task, stream = ALL["digits_ae_adam"](), RandomStream()
    replicas = Replicas.new(task, [4, 5])
    model = plain_model(replicas.parameters[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, betas=(0.9, 0.99))
    tables, rows = stream.tables([5])

    record = train(task, stream, replicas, seeds=[4, 5], learning_rate=[0.003, 0.01], batch=8, steps=12)

    losses = []
    for step in range(12):
        pixels, _ = task.sample(keys(tables, rows, torch.tensor([[8 * step]]), 8))
        loss = 4 * nn.functional.mse_loss(model(pixels[0]), pixels[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(record.loss[:, 1], losses, rtol=1e-4)
    trained = model(task.evaluation[0][0])
    expected = 4 * nn.functional.mse_loss(trained, task.evaluation[1][0]).item()
    assert evaluate(task, replicas.parameters)[1] == pytest.approx(expected, rel=1e-4)


def test_a_replica_trains_the_same_alone_and_in_a_stack_and_in_pieces():
    task, stream = ALL["digits_mlp"](), RandomStream()
    together, alone = Replicas.new(task, [1, 2, 3]), Replicas.new(task, [2])

    train(task, stream, together, seeds=[1, 2, 3], learning_rate=[0.1, 0.2, 0.3], batch=16, steps=9)
    for steps in (4, 5):
        train(task, stream, alone, seeds=[2], learning_rate=[0.2], batch=16, steps=steps)

    torch.testing.assert_close(together.parameters[1], alone.parameters[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["digits_mlp", "charlm_mlp", "digits_vae_adam", "charlm_transformer", "cartpole_pg"])
def test_advancing_without_a_look_at_single_examples_changes_no_weight(name):
    task, stream = ALL[name](), RandomStream()
    looked_at, advanced = Replicas.new(task, [1, 2, 1]), Replicas.new(task, [1, 2, 1])
    how = {"seeds": [1, 2, 1], "learning_rate": [0.01, 0.01, 0.03], "batch": 4, "steps": 5}

    train(task, stream, looked_at, **how)
    advance(task, stream, advanced, **how)

    torch.testing.assert_close(advanced.parameters, looked_at.parameters, rtol=1e-3, atol=1e-4)
    assert torch.equal(advanced.num_examples, looked_at.num_examples)


def test_terms_of_a_batch_are_those_of_its_per_example_gradients():
    task, stream = ALL["iris_softmax"](), RandomStream()
    replicas = Replicas.new(task, [0])
    tables, rows = stream.tables([0])
    features, labels = task.sample(keys(tables, rows, torch.zeros(1, 1, dtype=torch.long), 10))
    weights = replicas.parameters[0, :12].view(4, 3)
    delta = torch.softmax(features[0] @ weights, 1) - nn.functional.one_hot(labels[0], 3)
    rows_of_gradients = torch.cat([torch.einsum("bi,bo->bio", features[0], delta).flatten(1), delta], 1).double()

    record = train(task, stream, replicas, seeds=[0], learning_rate=[0.1], batch=10, steps=1)

    trace_cov = rows_of_gradients.var(0, unbiased=True).sum().item()
    assert record.trace_cov[0, 0] == pytest.approx(trace_cov, rel=1e-5)
    expected = rows_of_gradients.mean(0).square().sum().item() - trace_cov / 10
    assert record.grad_sq_norm[0, 0] == pytest.approx(expected, rel=1e-4)


def test_average_is_over_the_weights_after_the_last_half_of_the_updates():
    task, stream = ALL["iris_softmax"](), RandomStream()
    replicas, step_by_step = Replicas.new(task, [0]), Replicas.new(task, [0])

    record = train(task, stream, replicas, seeds=[0], learning_rate=[0.1], batch=4, steps=5, wants_average=True)

    after = []
    for _ in range(5):
        train(task, stream, step_by_step, seeds=[0], learning_rate=[0.1], batch=4, steps=1)
        after.append(step_by_step.parameters.clone())
    torch.testing.assert_close(record.average, torch.stack(after[2:]).mean(0))


def test_replicas_of_one_seed_see_the_same_examples_at_any_batch_size():
    tables, rows = RandomStream().tables([7])
    start = torch.zeros(1, 1, dtype=torch.long)

    big = keys(tables, rows, start, 12)
    small = torch.cat([keys(tables, rows, start + 4 * step, 4) for step in range(3)], 1)

    assert torch.equal(big, small)


def test_a_stream_that_is_used_up_does_not_repeat():
    tables, rows = RandomStream().tables([7])

    first = keys(tables, rows, torch.zeros(1, 1, dtype=torch.long), 100)
    second = keys(tables, rows, torch.full((1, 1), LENGTH), 100)

    assert not torch.equal(first, second)
    assert not torch.equal(pick(first, 1797), pick(second, 1797))
    assert 0 <= float(fraction(second).min()) <= float(fraction(second).max()) < 1


def test_a_batch_of_one_example_is_refused_as_it_has_no_spread():
    task = ALL["iris_softmax"]()

    with pytest.raises(ValueError, match="batch must be at least 2"):
        train(task, RandomStream(), Replicas.new(task, [0]), seeds=[0], learning_rate=[0.1], batch=1, steps=1)


def test_no_task_is_both_for_design_and_held_out():
    assert not DESIGN.keys() & HELD_OUT.keys()
    assert all(build().name == name for name, build in ALL.items())


def test_the_beginning_of_a_table_is_that_of_the_whole_one() -> None:
    """Short runs with many seeds draw no more than they need, and see the same examples."""
    whole, begun = RandomStream().table(3), RandomStream()

    for length in (5, 4096, 5000):
        assert torch.equal(begun.table(3, length), whole[:length])
