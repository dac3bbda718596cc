"""One backward whose forward ran in parts: each part is a small batch, and the training stays what it was."""

import copy
import io
import pickle
import subprocess
import sys
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of, terms_of_means
from noisescale.options import Arithmetic
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags

PARTS = (4, 4, 4, 4)


def split_run(model, split=4, strict=True, **options):
    run, kept = make_kept_run(strict=strict)
    run.watch(model, torch.optim.SGD(model.parameters(), lr=0.1), arithmetic=Arithmetic(split=split), **options)
    return run, kept


def loss_of(output, classes):
    return nn.functional.cross_entropy(output, classes)


def means_of_parts(model, inputs, classes, sizes, loss=loss_of):
    parameters = [p for p in model.parameters() if p.requires_grad]
    return [
        flat_gradient(loss(model(x), y), parameters)
        for x, y in zip(inputs.split(list(sizes)), classes.split(list(sizes)), strict=True)
    ]


@pytest.mark.parametrize(("dtype", "rel"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize(("num_examples", "sizes"), [(16, PARTS), (18, (5, 5, 4, 4)), (3, (1, 1, 1))])
def test_each_part_is_a_small_batch(dtype, rel, num_examples, sizes):
    model = make_model().to(dtype)
    inputs, classes = make_batch(num_examples)
    inputs = inputs.to(dtype)
    truth = terms_of_means(means_of_parts(model, inputs, classes, sizes), sizes)
    run, kept = split_run(model)

    loss_of(model(inputs), classes).backward()
    run.log_gradients()
    run.finish()

    row = kept.rows()[0]
    assert terms_of(row) == pytest.approx(truth, rel=rel)
    assert (row.num_micro_batches, row.global_batch) == (len(sizes), num_examples)
    assert row.flags == (Flags.UNEQUAL_MICRO_BATCHES if len(set(sizes)) > 1 else 0)


def test_the_stream_says_that_the_batch_is_split():
    model = make_model()
    run, _ = split_run(model)

    stream = run._main._run_record("simple").stream

    assert stream["estimator"] == "split"
    assert stream["notes"] == ["each forward runs in 4 parts: random numbers such as dropout's come in another order"]


def test_loss_and_gradients_equal_those_of_the_whole_batch_to_rounding():
    model = make_model().double()
    inputs, classes = make_batch()
    inputs = inputs.double()
    whole = loss_of(model(inputs), classes)
    expected = flat_gradient(whole, list(model.parameters()))
    split_run(model)

    loss = loss_of(model(inputs), classes)
    loss.backward()

    assert loss.item() == pytest.approx(whole.item(), rel=1e-14)
    torch.testing.assert_close(torch.cat([p.grad.flatten() for p in model.parameters()]), expected, rtol=1e-12, atol=0)


def test_micro_batches_are_split_too():
    model = make_model().double()
    inputs, classes = make_batch()
    inputs = inputs.double()
    truth = terms_of_means(means_of_parts(model, inputs, classes, PARTS), PARTS)
    run, kept = split_run(model, split=2)

    for x, y in zip(inputs.split(8), classes.split(8), strict=True):
        (loss_of(model(x), y) / 2).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_each_layer_has_its_terms():
    model = make_model().double()
    inputs, classes = make_batch()
    inputs = inputs.double()
    last = list(model[3].parameters())
    means = [flat_gradient(loss_of(model(x), y), last) for x, y in zip(inputs.split(4), classes.split(4), strict=True)]
    run, kept = split_run(model)

    loss_of(model(inputs), classes).backward()
    run.log_gradients()
    run.finish()

    groups = kept.groups()[0]
    assert (groups.sum_trace_cov[2], groups.sum_grad_sq_norm[2]) == pytest.approx(
        terms_of_means(means, PARTS), rel=1e-10
    )


class Outputs(NamedTuple):
    logits: torch.Tensor
    scale: float


class ManyOutputs(nn.Module):
    """Batches in a dictionary and by name, outputs of several types, a tied weight, a mask without batch."""

    def __init__(self, shape):
        super().__init__()
        self.embed = nn.Embedding(4, 4)
        self.inner = nn.Linear(4, 4, bias=False)
        self.shape = shape

    def forward(self, batch, *, shift, mask):
        hidden = torch.tanh(self.inner(batch["x"] * mask + shift))
        logits = hidden @ self.embed.weight.t()
        match self.shape:
            case "tuple":
                return logits, [hidden, None]
            case "dictionary":
                return {"logits": logits, "hidden": hidden}
            case "named tuple":
                return Outputs(logits, 1.0)


@pytest.mark.parametrize(
    ("shape", "logits"),
    [("tuple", lambda out: out[0]), ("dictionary", lambda out: out["logits"]), ("named tuple", lambda out: out.logits)],
)
def test_batches_and_outputs_may_be_nested(shape, logits):
    torch.manual_seed(0)
    model = ManyOutputs(shape).double()
    x, y = torch.randn(8, 4).double(), torch.randint(0, 4, (8,))
    shift, mask = torch.randn(8, 4).double(), torch.rand(4).double()

    def compute(rows):
        return loss_of(logits(model({"x": x[rows]}, shift=shift[rows], mask=mask)), y[rows])

    parts = [slice(start, start + 2) for start in range(0, 8, 2)]
    truth = terms_of_means([flat_gradient(compute(part), list(model.parameters())) for part in parts], [2] * 4)
    run, kept = split_run(model)

    compute(slice(None)).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


class TakesTheMean(nn.Module):
    """Its output has no batch."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x):
        return self.inner(x).mean()


class MixesTheBatch(nn.Module):
    """Its output for one example depends on the others."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 3)

    def forward(self, x):
        return self.inner(x - x.mean(0))


@pytest.mark.parametrize(
    ("model_class", "reason"), [(TakesTheMean, "does not have the batch first"), (MixesTheBatch, "another output")]
)
def test_a_model_that_is_not_separable_runs_as_without_and_its_micro_batches_are_measured(model_class, reason, caplog):
    torch.manual_seed(0)
    model = model_class().double()
    inputs = make_batch()[0].double()
    whole = model(inputs)
    run, kept = split_run(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run.unwatch()
    run.watch(model, optimizer, arithmetic=Arithmetic(split=4))

    outputs = []
    for _ in range(2):
        for x in (inputs, 3 * inputs):
            outputs.append(model(x))
            outputs[-1].square().sum().backward()
        run.log_gradients(batch_size=32)
        optimizer.step()
        optimizer.zero_grad()

    assert torch.equal(outputs[0], whole)
    assert reason in caplog.text
    assert kept.rows()[0].sum_trace_cov is None
    assert kept.rows()[1].num_micro_batches == 2
    assert kept.rows()[1].sum_trace_cov is not None
    assert run._main._stream.estimator == "micro_batches"
    assert "forward" not in vars(model)


def test_one_example_is_not_split():
    model = make_model()
    inputs, classes = make_batch(1)
    run, kept = split_run(model)

    loss_of(model(inputs), classes).backward()
    run.log_gradients(batch_size=1)

    assert kept.rows()[0].sum_trace_cov is None


def test_a_penalty_outside_of_the_forward_is_noticed():
    """It reaches the parameters directly, so the parts no longer add up to the gradient."""
    model = make_model()
    inputs, classes = make_batch()
    run, kept = split_run(model)

    (loss_of(model(inputs), classes) + sum(p.square().sum() for p in model.parameters())).backward()
    run.log_gradients()

    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags) == (None, Flags.NONFINITE_GRADIENT)


class Checkpointed(nn.Module):
    def __init__(self, use_reentrant):
        super().__init__()
        self.inner = make_model()
        self.use_reentrant = use_reentrant

    def forward(self, x):
        return checkpoint(self.inner, x, use_reentrant=self.use_reentrant)


def test_checkpointing_inside_the_model_gives_the_same_terms():
    model = Checkpointed(use_reentrant=False).double()
    inputs, classes = make_batch()
    inputs = inputs.double()
    truth = terms_of_means(means_of_parts(model, inputs, classes, PARTS), PARTS)
    run, kept = split_run(model)

    loss_of(model(inputs), classes).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_checkpointing_around_the_model_gives_the_same_terms():
    model = make_model().double()
    inputs, classes = make_batch()
    inputs = inputs.double()
    truth = terms_of_means(means_of_parts(model, inputs, classes, PARTS), PARTS)
    run, kept = split_run(model)

    loss_of(checkpoint(model, inputs, use_reentrant=False), classes).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_reentrant_checkpointing_is_noticed_and_changes_nothing():
    """Its backward goes to the parameters themselves."""
    model = Checkpointed(use_reentrant=True)
    inputs, classes = make_batch()
    inputs.requires_grad_()
    loss_of(model(inputs), classes).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    run, kept = split_run(model)

    loss_of(model(inputs), classes).backward()
    run.log_gradients()

    torch.testing.assert_close([p.grad for p in model.parameters()], expected)
    assert (kept.rows()[0].sum_trace_cov, kept.rows()[0].flags & Flags.UNMATCHED_GRADIENT) == (None, 64)


def test_a_step_that_is_not_measured_runs_the_plain_forward():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs, classes = make_batch()
    run, kept = make_kept_run()
    run.watch(model, optimizer, arithmetic=Arithmetic(split=4), every=2)

    has_own_forward = []
    for _ in range(4):
        has_own_forward.append("forward" in vars(model))
        loss_of(model(inputs), classes).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()

    assert has_own_forward == [True, False, True, False]
    assert [row.step for row in kept.rows()] == [0, 2]
    assert kept.rows()[0].sum_trace_cov == kept.rows()[1].sum_trace_cov


def test_an_ignored_backward_is_not_in_the_parts():
    model = make_model().double()
    inputs, classes = make_batch()
    inputs = inputs.double()
    truth = terms_of_means(means_of_parts(model, inputs, classes, PARTS), PARTS)
    run, kept = split_run(model)

    with run.ignore():
        model(inputs).sum().backward()
    loss_of(model(inputs), classes).backward()
    run.log_gradients()

    assert terms_of(kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_evaluation_sees_the_plain_forward():
    model = make_model()
    inputs, _ = make_batch()
    whole = model(inputs)
    split_run(model)

    with torch.no_grad():
        output = model(inputs)

    assert torch.equal(output, whole)


def test_batch_normalisation_sees_the_parts_and_the_rows_say_so():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    twin = copy.deepcopy(model)
    inputs, classes = make_batch()
    run, kept = split_run(model, split=2)

    loss_of(model(inputs), classes).backward()
    run.log_gradients()
    for part in inputs.split(8):
        twin(part)

    torch.testing.assert_close(model[1].running_var, twin[1].running_var)
    assert model[1].num_batches_tracked == 2
    assert kept.rows()[0].flags == Flags.COUPLED_EXAMPLES
    assert any("BatchNorm (1) couples" in note for note in run._main._stream.notes)


def test_copies_pickles_and_state_dicts_are_unharmed():
    model = make_model()
    inputs, _ = make_batch()
    expected = model(inputs)
    names = list(model.state_dict())
    run, kept = split_run(model)

    twin = copy.deepcopy(model)
    pickled = pickle.dumps(model)
    torch.save(model, io.BytesIO())

    assert list(model.state_dict()) == names
    assert b"noisescale" not in pickled
    assert torch.equal(twin(inputs), expected)
    assert torch.equal(pickle.loads(pickled)(inputs), expected)
    twin(inputs).sum().backward()
    run.log_gradients()
    assert kept.rows()[0].num_micro_batches == 0


@pytest.mark.slow
@pytest.mark.processes
def test_a_pickled_model_loads_where_this_package_is_missing():
    model = make_model()
    split_run(model)

    loading = "import pickle, sys, torch; m = pickle.load(sys.stdin.buffer); print(m(torch.ones(1, 4)).shape[1])"
    loaded = subprocess.run([sys.executable, "-c", loading], input=pickle.dumps(model), capture_output=True, check=True)

    assert loaded.stdout == b"3\n"


def test_unwatch_puts_the_forward_back():
    model = make_model()
    before = dict(vars(model))
    run, _ = split_run(model)

    run.unwatch()

    assert str(vars(model)) == str(before)


def test_a_forward_of_the_users_own_comes_back():
    model = make_model()
    plain = model.forward
    model.forward = lambda x: 2 * plain(x)
    mine = model.forward
    inputs, _ = make_batch()
    run, _ = split_run(model)

    output = model(inputs)
    run.unwatch()

    torch.testing.assert_close(output, 2 * plain(inputs))
    assert model.forward is mine


def test_a_part_that_the_model_refuses_ends_the_split_and_not_the_training():
    """BatchNorm in training mode takes no single example."""
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 3))
    inputs, _ = make_batch(4)
    run, _ = split_run(model, strict=False)

    output = model(inputs)

    assert output.shape == (4, 3)
    assert run.faults.count == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": 1}, "from 2, got 1"),
        ({"split": True}, "from 2, got True"),
        ({"split": 4, "small_batches": "per_example"}, "exclude each other"),
        ({"split": 4, "kinds": ["sign"]}, "need backward passes"),
        ({"small_batches": "per_example", "kinds": ["sign"]}, "need backward passes"),
    ],
)
def test_what_cannot_be_split_is_refused_before_the_first_step(options, message):
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match=message):
        run.watch(make_model(), **options)
