"""Single examples as small batches in a run: unasked where a step has one backward, or by choice."""

import pytest
import torch
from torch import nn

from client_runs import brute_force_terms, gradient_of_each, make_batch, make_kept_run, make_model, terms_of
from noisescale_core.errors import ConfigError
from noisescale_core.estimators.flags import Flags


class Loop:
    """One backward a step, at weights that stay."""

    def __init__(self, model=None, *, num_examples=16, lr=0.0, **options):
        self.model = (model or make_model()).double()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.num_examples = num_examples
        self.run, self.kept = make_kept_run()
        self.options = options

    def watch(self):
        self.run.watch(self.model, self.optimizer, **self.options)

    def batch(self, index=0):
        inputs, classes = make_batch(self.num_examples, seed=index)
        return inputs.double(), classes

    def truth(self, names=None):
        gradients = gradient_of_each(self.model, *self.batch())
        chosen = [gradient for name, gradient in gradients.items() if names is None or name.startswith(names)]
        return brute_force_terms(chosen, [1] * self.num_examples)

    def step(self, index=0, chunks=1):
        inputs, classes = self.batch(index)
        for x, y in zip(inputs.chunk(chunks), classes.chunk(chunks), strict=True):
            (nn.functional.cross_entropy(self.model(x), y) / chunks).backward()
        self.run.log_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad()

    @property
    def stream(self):
        return self.run._recorders.main._stream


def test_one_backward_a_step_is_measured_by_examples_from_the_second_step_on(caplog):
    loop = Loop()
    truth = loop.truth()
    loop.watch()

    for _ in range(4):
        loop.step()
    loop.run.finish()

    first, *others = loop.kept.rows()
    assert (first.sum_trace_cov, first.flags) == (None, Flags.ONE_SMALL_BATCH)
    measured = [row for row in others if row.sum_trace_cov is not None]
    assert measured
    for row in measured:
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.num_micro_batches, row.micro_batch_size, row.global_batch) == (16, 1, 16)
    assert loop.stream.estimator == "per_example"
    assert "one backward a step gives no noise scale" not in caplog.text


def test_layers_keep_their_names_and_have_their_terms():
    loop = Loop()
    truth = loop.truth("3.")
    loop.watch()

    for _ in range(30):
        loop.step()
    loop.run.finish()

    groups = loop.kept.groups()[-1]
    assert groups.names == ["0", "1", "3"]
    count = groups.num_updates[2]
    assert (groups.sum_trace_cov[2] / count, groups.sum_grad_sq_norm[2] / count) == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), {}),
        (make_model, {"small_batches": "micro_batches"}),
        (make_model, {"kinds": ["sign"]}),
    ],
    ids=["BatchNorm", "micro-batches asked for", "further kinds"],
)
def test_examples_are_not_told_apart_unasked(model, options):
    loop = Loop(model(), **options)
    loop.watch()

    for _ in range(3):
        loop.step()

    assert all(row.flags & Flags.ONE_SMALL_BATCH for row in loop.kept.rows())
    assert loop.stream.estimator == "micro_batches"


class OwnLayer(nn.Module):
    """Most of its parameters lie in a layer without a formula."""

    def __init__(self):
        super().__init__()
        self.big = nn.utils.parametrizations.weight_norm(nn.Linear(4, 64))
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.big(x)))


def test_a_model_that_is_hardly_covered_is_not_measured_unasked():
    torch.manual_seed(0)
    loop = Loop(OwnLayer())
    loop.watch()

    for _ in range(3):
        loop.step()

    assert all(row.flags & Flags.ONE_SMALL_BATCH for row in loop.kept.rows())
    assert not any(module._forward_hooks for module in loop.model.modules())


class OwnUse(nn.Module):
    """A weight is also used outside of its layer, which shows in the first backward only."""

    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.hidden(x))) + (x @ self.hidden.weight.exp().t())[:, :3]


def test_a_parameter_that_turns_out_not_to_be_measurable_is_named_in_the_notes():
    torch.manual_seed(0)
    loop = Loop(OwnUse(), small_batches="per_example")
    loop.watch()

    for _ in range(3):
        loop.step()

    assert loop.kept.rows()[0].sum_trace_cov is None
    assert loop.kept.rows()[2].sum_trace_cov is not None
    assert any("hidden.weight" in note for note in loop.stream.notes)


def test_micro_batches_are_preferred_where_there_are_some():
    loop = Loop()
    loop.watch()

    for _ in range(3):
        loop.step(chunks=4)

    assert {row.num_micro_batches for row in loop.kept.rows()} == {4}


@pytest.mark.parametrize("chunks", [1, 4])
def test_examples_asked_for_are_measured_from_the_first_step_on(chunks):
    loop = Loop(small_batches="per_example")
    truth = loop.truth()
    loop.watch()

    for _ in range(2):
        loop.step(chunks=chunks)

    for row in loop.kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)
        assert (row.num_micro_batches, row.flags) == (16, 0)


def test_ragged_micro_batches_are_examples_of_equal_weight():
    loop = Loop(small_batches="per_example")
    truth = loop.truth()
    loop.watch()
    inputs, classes = loop.batch()

    for x, y in zip(inputs.split((7, 2, 4, 3)), classes.split((7, 2, 4, 3)), strict=True):
        (nn.functional.cross_entropy(loop.model(x), y, reduction="sum") / 16).backward()
    loop.run.log_gradients()

    assert terms_of(loop.kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_only_every_kth_step_has_hooks_that_work():
    loop = Loop(small_batches="per_example", every=3)
    truth = loop.truth()
    loop.watch()

    for _ in range(7):
        loop.step()

    assert [row.step for row in loop.kept.rows()] == [0, 3, 6]
    for row in loop.kept.rows():
        assert terms_of(row) == pytest.approx(truth, rel=1e-10)


def test_an_ignored_backward_is_none_of_the_examples():
    loop = Loop(small_batches="per_example")
    truth = loop.truth()
    loop.watch()

    with loop.run.ignore():
        loop.model(loop.batch(5)[0]).sum().backward()
    loop.step()

    assert terms_of(loop.kept.rows()[0]) == pytest.approx(truth, rel=1e-10)


def test_batch_normalisation_has_no_examples_to_measure():
    loop = Loop(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), small_batches="per_example")

    with pytest.raises(ConfigError, match="use GroupNorm or LayerNorm"):
        loop.watch()


def test_a_backward_that_cannot_be_taken_apart_gives_its_reason(caplog):
    loop = Loop(small_batches="per_example")
    loop.watch()
    inputs, classes = loop.batch()

    hidden = torch.utils.checkpoint.checkpoint(loop.model, inputs.requires_grad_(), use_reentrant=True)
    nn.functional.cross_entropy(hidden, classes).backward()
    loop.run.log_gradients()

    row = loop.kept.rows()[0]
    assert (row.sum_trace_cov, row.flags) == (None, Flags.UNMATCHED_GRADIENT | Flags.BATCH_SIZE_UNKNOWN)
    assert "no backward since" not in caplog.text
    assert "so its step has no estimate: reentrant checkpointing: pass use_reentrant=False" in caplog.text


def test_the_examples_of_a_backward_that_cannot_be_taken_apart_are_counted(caplog):
    caplog.set_level("WARNING", "noisescale")
    loop = Loop(small_batches="per_example")
    loop.watch()
    inputs, classes = loop.batch()

    extra = loop.model[3](torch.ones(16, 8, dtype=torch.float64)).sum()
    (nn.functional.cross_entropy(loop.model(inputs), classes) + extra).backward()
    loop.run.log_gradients()

    row = loop.kept.rows()[0]
    assert (row.sum_trace_cov, row.flags) == (None, Flags.UNMATCHED_GRADIENT)
    assert (row.global_batch, row.examples) == (16, 16)
    assert [record.message.split(":")[0] for record in caplog.records] == [
        "a backward could not be taken apart, so its step has no estimate"
    ]


def test_the_proxy_measures_the_normalisations_and_says_so():
    loop = Loop(small_batches="layer_norm_proxy")
    truth = loop.truth("1.")
    loop.watch()

    loop.step()

    row = loop.kept.rows()[0]
    assert terms_of(row) == pytest.approx(truth, rel=1e-10)
    assert row.flags == Flags.LAYER_NORM_PROXY
    assert loop.stream.estimator == "layer_norm_proxy"


@pytest.mark.slow
@pytest.mark.thorough
def test_a_proxy_is_calibrated_by_the_micro_batches_of_the_same_steps(caplog):
    """The note holds the ratio of the noise scales, as exact sums over the same steps give it."""
    loop = Loop(small_batches="layer_norm_proxy", num_examples=512)
    micro = Loop(small_batches="micro_batches", num_examples=512)
    loop.watch()
    micro.watch()

    for index in range(161):
        for one in (loop, micro):
            one.step(index, chunks=4)

    [note] = [note for note in loop.stream.notes if note.startswith("whole model / proxy = ")]
    steps = range(0, 160, 10)
    proxy, whole = ([one.kept.rows()[index] for index in steps] for one in (loop, micro))
    noise_scales = [
        sum(r.sum_trace_cov for r in rows) / sum(r.sum_grad_sq_norm for r in rows) for rows in (proxy, whole)
    ]
    assert note.startswith(f"whole model / proxy = {noise_scales[1] / noise_scales[0]:.3g} [")
    assert note.endswith("], from 16 steps with both")


def test_a_programs_own_hook_on_the_optimizer_runs_on_when_examples_become_the_small_batches():
    loop, seen = Loop(), []
    loop.watch()
    loop.optimizer.register_step_post_hook(lambda *_: seen.append(loop.run.config))

    for index in range(6):
        loop.step(index)

    assert loop.stream.estimator == "per_example"
    assert len(seen) == 6


def test_a_proxy_without_micro_batches_stays_uncalibrated():
    loop = Loop(small_batches="layer_norm_proxy")
    loop.watch()

    for index in range(120):
        loop.step(index)

    assert not any("whole model" in note for note in loop.stream.notes)
    assert loop.run._recorders.main._watching.calibrator.whole._step_handles == []


@pytest.mark.thorough
@pytest.mark.parametrize("small_batches", ["per_example", "layer_norm_proxy", "auto"])
def test_training_is_bit_identical(small_batches):
    results = []
    for is_watched in (False, True):
        loop = Loop(lr=0.1, small_batches=small_batches)
        if is_watched:
            loop.watch()
        for index in range(12):
            loop.step(index)
        results.append(torch.cat([p.detach().flatten() for p in loop.model.parameters()]))

    assert torch.equal(*results)


@pytest.mark.parametrize("small_batches", ["per_example", "layer_norm_proxy", "auto"])
def test_unwatch_leaves_no_hook(small_batches):
    loop = Loop(small_batches=small_batches)
    before = list(loop.model.state_dict())
    loop.watch()
    for _ in range(3):
        loop.step()

    loop.run.unwatch()

    for module in loop.model.modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert not module._backward_hooks
    assert all(not p._backward_hooks for p in loop.model.parameters())
    assert not loop.optimizer._optimizer_step_post_hooks
    assert list(loop.model.state_dict()) == before


class Routed(nn.Module):
    """An expert that gets some of the examples once it is `late`."""

    def __init__(self):
        super().__init__()
        self.gate, self.expert = nn.Linear(4, 8), nn.Linear(8, 3)
        self.is_late = False

    def forward(self, x):
        hidden = torch.tanh(self.gate(x))
        if not self.is_late:
            return self.expert(hidden)
        is_routed = hidden[:, :1] > 0
        chosen = is_routed.flatten().nonzero().flatten()
        return hidden[:, :3].index_add(0, chosen, self.expert(hidden[chosen]))


def test_a_model_of_which_too_little_stays_measurable_is_measured_by_its_backward_passes(caplog):
    torch.manual_seed(0)
    loop = Loop(Routed())
    loop.watch()
    for _ in range(4):
        loop.step()
    assert loop.stream.estimator == "per_example"

    loop.model.is_late = True
    for _ in range(70):
        loop.step()

    assert loop.stream.estimator == "micro_batches"
    assert loop.kept.rows()[-1].flags == Flags.ONE_SMALL_BATCH
    assert any("60 % of the model's elements only" in note for note in loop.stream.notes)
    assert "or pass watch() split=8" in caplog.text


def test_what_is_left_of_a_model_is_measured_where_that_was_asked_for():
    torch.manual_seed(0)
    loop = Loop(Routed(), small_batches="per_example")
    loop.watch()
    loop.step()
    loop.model.is_late = True

    for _ in range(3):  # in one the layer turns out to be no use, in the next the graph
        loop.step()

    assert loop.stream.estimator == "per_example"
    assert terms_of(loop.kept.rows()[-1]) == pytest.approx(loop.truth("gate"), rel=1e-10)


class Gate(nn.Module):
    """A parameter that the graph does not show where it meets the examples."""

    def __init__(self):
        super().__init__()
        self.openness = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x * self.openness.sigmoid()


def test_the_share_that_is_measured_stands_beside_the_noise_scale():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), Gate(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    run, _ = make_kept_run()
    run.watch(model, optimizer, small_batches="per_example")

    for step in range(20):
        inputs, _ = make_batch(64, seed=step)
        nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
        run.log_gradients()
        optimizer.step()
        optimizer.zero_grad()

    found = run.noise_scale()
    assert found.covered == 67 / 68
    assert ", of 98.5 % of the model" in str(found)
    run.finish()
    assert ", of 98.5 % of the model" in str(run.noise_scale())
