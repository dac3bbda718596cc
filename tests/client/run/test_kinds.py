"""Further kinds of noise scale in a run: each a stream of its own, from the same small batches."""

import pytest
import torch
from torch import nn

from client_runs import flat_gradient, make_batch, make_kept_run, make_model, terms_of_means
from noisescale.capture.kinds.sign import SignKind
from noisescale.capture.kinds.spectral import SpectralKind
from noisescale.transport.wire import FinishRecord, Measurement, RunRecord
from noisescale_core.errors import ConfigError

SIZES = (4, 4, 4, 4)


class Loop:
    def __init__(self, kinds, *, optimizer_class=torch.optim.AdamW, lr=1e-3, sizes=SIZES, **options):
        self.model = make_model().double()
        self.optimizer = optimizer_class(self.model.parameters(), lr=lr)
        self.sizes = sizes
        self.run, self.kept = make_kept_run()
        self.run.watch(self.model, self.optimizer, kinds=kinds, **options)

    def parts(self, index):
        inputs, classes = make_batch(sum(self.sizes), seed=index)
        return zip(inputs.double().split(list(self.sizes)), classes.split(list(self.sizes)), strict=True)

    def means(self, index):
        parameters = list(self.model.parameters())
        return [flat_gradient(nn.functional.cross_entropy(self.model(x), y), parameters) for x, y in self.parts(index)]

    def backward(self, index, *, mark=None):
        for x, y in self.parts(index):
            loss = nn.functional.cross_entropy(self.model(x), y, reduction="sum") / sum(self.sizes)
            if mark is None:
                loss.backward()
            else:
                with self.run.micro_batch(mark(len(x))):
                    loss.backward()

    def step(self, index, **backward):
        self.backward(index, **backward)
        self.run.log_gradients(loss=1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def rows(self, kind):
        return self.kept.of_kind(kind).rows()


def divisor(optimizer):
    """√v̂ + ε of AdamW for each coordinate, before the step that comes."""
    pieces = []
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = optimizer.state[parameter]
            corrected = state["exp_avg_sq"] / (1 - group["betas"][1] ** float(state["step"]))
            pieces.append((corrected.sqrt() + group["eps"]).flatten())
    return torch.cat(pieces)


@pytest.mark.parametrize("sizes", [SIZES, (7, 2, 4, 3)], ids=["equal", "unequal"])
def test_adam_terms_are_those_of_the_divided_gradients(sizes):
    loop = Loop(["adam"], sizes=sizes)
    for index in range(6):
        loop.step(index)
    loop.run.unwatch()
    means = [mean / divisor(loop.optimizer) for mean in loop.means(6)]
    trace_cov, grad_sq_norm = terms_of_means(means, sizes)
    loop.run.watch(loop.model, loop.optimizer, kinds=["adam"])

    loop.step(6)

    row = loop.rows("adam")[-1]
    assert row.sum_trace_cov == pytest.approx(trace_cov, rel=1e-10)
    if sizes == SIZES:
        assert row.sum_grad_sq_norm == pytest.approx(grad_sq_norm, rel=1e-10)


def test_adam_begins_after_five_steps_and_the_simple_kind_at_once():
    loop = Loop(["adam"])

    for index in range(8):
        loop.step(index)

    assert [row.step for row in loop.rows("adam")] == [5, 6, 7]
    assert [row.step for row in loop.kept.rows()] == list(range(8))


@pytest.mark.parametrize(("kind", "kind_class"), [("sign", SignKind), ("spectral", SpectralKind)])
def test_the_terms_are_those_of_the_kind_fed_by_hand(kind, kind_class):
    loop = Loop([kind], optimizer_class=torch.optim.SGD, lr=0.0)
    by_hand = kind_class(list(loop.model.parameters()))
    expected = []
    for index in range(30):
        if not by_hand.is_ready():
            loop.step(index)
            expected.append(None)
            by_hand.clear()
            continue
        loop.run.unwatch()
        by_hand.clear()
        handles = [
            p.register_hook(lambda gradient, i=i: by_hand.add([i], [gradient]))
            for i, p in enumerate(loop.model.parameters())
        ]
        for x, y in loop.parts(index):
            (nn.functional.cross_entropy(loop.model(x), y, reduction="sum") / 16).backward()
            by_hand.end_small_batch(4)
        values = by_hand.values(scale=1.0).tolist()
        expected.append(by_hand.terms(values, num_small_batches=4, batch_size=16))
        for handle in handles:
            handle.remove()
        loop.optimizer.zero_grad()
    measured = Loop([kind], optimizer_class=torch.optim.SGD, lr=0.0)

    for index in range(30):
        measured.step(index)

    found = {row.step: (row.sum_trace_cov, row.sum_grad_sq_norm) for row in measured.rows(kind)}
    truth = {i: (t.trace_cov, t.grad_sq_norm) for i, t in enumerate(expected) if t is not None}
    assert found.keys() == truth.keys()
    for step, terms in truth.items():
        assert found[step] == pytest.approx(terms, rel=1e-9)


def test_the_rows_of_a_kind_hold_no_loss_and_no_layers():
    loop = Loop(["adam", "sign"])

    for index in range(8):
        loop.step(index)
    loop.run.finish()

    for kind in ("adam", "sign"):
        kept = loop.kept.of_kind(kind)
        assert {(row.sum_loss, row.num_loss) for row in kept.rows()} <= {(None, 0)}
        assert kept.groups() == []


def test_each_kind_is_a_stream_of_the_same_run():
    loop = Loop(["adam", "sign"])

    for index in range(7):
        loop.step(index)
    loop.run.finish()

    assert {run_id for run_id, _ in loop.kept.others} == {loop.run.id}
    for kind in ("adam", "sign"):
        kept = loop.kept.of_kind(kind)
        assert kept.describe().stream["kind"] == kind
        assert kept.is_closed
    assert isinstance(loop.kept.of_kind("adam").records[-1], FinishRecord)


def test_a_stream_that_has_begun_says_anew_how_it_measures():
    loop = Loop(["adam"])
    for index in range(7):
        loop.step(index)
    main = loop.run._recorders.main
    main._run_record("simple")

    main._stream.add_note("something new")
    main._describe_again()

    records = [record for record in loop.kept.of_kind("adam").records if isinstance(record, RunRecord)]
    assert [record.stream["notes"] for record in records] == [["something new"]]
    assert records[0].stream["kind"] == "adam"


def test_a_kind_without_a_row_sends_nothing():
    loop = Loop(["adam"])

    loop.step(0)
    loop.run.finish()

    assert loop.kept.of_kind("adam").records == []


def test_the_noise_scale_of_a_kind_is_asked_for_by_name(caplog):
    loop = Loop(["adam"])
    for index in range(9):
        loop.step(index)

    adam, spectral = loop.run.noise_scale(kind="adam"), loop.run.noise_scale(kind="spectral")

    assert (adam.num_updates, loop.run.noise_scale().num_updates) == (4, 9)
    assert (spectral.num_updates, spectral.value) == (0, None)
    assert "kind 'spectral' is not measured" in caplog.text


@pytest.mark.parametrize("reason", ["sizes on the device", "ignored backward", "one small batch", "unmatched"])
def test_a_step_that_a_kind_cannot_judge_has_no_row(reason):
    loop = Loop(["adam"], small_batches="micro_batches")
    for index in range(6):
        loop.step(index)
    before = len(loop.rows("adam"))

    if reason == "sizes on the device":
        loop.backward(6, mark=lambda size: torch.tensor(float(size)))
    elif reason == "ignored backward":
        loop.backward(6)
        with loop.run.ignore():
            sum(p.square().sum() for p in loop.model.parameters()).backward()
    elif reason == "one small batch":
        inputs, classes = make_batch(16)
        nn.functional.cross_entropy(loop.model(inputs.double()), classes).backward()
    else:
        loop.backward(6)
        nn.utils.clip_grad_norm_(loop.model.parameters(), 0.1)
    loop.run.log_gradients()

    assert len(loop.rows("adam")) == before
    assert len(loop.kept.rows()) == 7


def test_sizes_on_the_host_may_be_marked():
    loop = Loop(["adam"], sizes=(7, 2, 4, 3))

    for index in range(7):
        loop.step(index, mark=float)

    assert [row.step for row in loop.rows("adam")] == [5, 6]


def test_segments_of_reentrant_checkpointing_give_no_terms_of_a_kind():
    """They have closed the small batch before it is whole."""
    loop = Loop(["sign"], optimizer_class=torch.optim.SGD)

    for x, y in loop.parts(0):
        hidden = x.clone().requires_grad_()
        for layer in loop.model:
            hidden = torch.utils.checkpoint.checkpoint(layer, hidden, use_reentrant=True)
        (nn.functional.cross_entropy(hidden, y) / 4).backward()
    loop.run.log_gradients(batch_size=16)

    assert loop.kept.rows()[0].num_micro_batches == 4


def test_the_loss_scale_is_undone_in_every_kind():
    results = []
    for scale in (1.0, 2.0**10):
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=10**6)
        loop = Loop(["adam", "sign"], scaler=scaler)
        for index in range(8):
            for x, y in loop.parts(index):
                scaler.scale(nn.functional.cross_entropy(loop.model(x), y) / 4).backward()
            loop.run.log_gradients()
            scaler.step(loop.optimizer)
            scaler.update()
            loop.optimizer.zero_grad()
        results.append([(r.sum_trace_cov, r.sum_grad_sq_norm) for k in ("adam", "sign") for r in loop.rows(k)])

    assert len(results[0]) >= 3
    assert len(results[0]) == len(results[1])
    for scaled, plain in zip(results[1], results[0], strict=True):
        assert scaled == pytest.approx(plain, rel=1e-9)


def test_training_is_bit_identical_with_all_kinds():
    results = []
    for kinds in ((), ("adam", "sign", "spectral")):
        loop = Loop(kinds)
        if not kinds:
            loop.run.unwatch()
        for index in range(15):
            loop.step(index)
        results.append(torch.cat([p.detach().flatten() for p in loop.model.parameters()]))

    assert torch.equal(*results)


def test_a_second_watch_goes_on_with_the_same_stream():
    loop = Loop(["adam"])
    for index in range(7):
        loop.step(index)

    loop.run.unwatch()
    loop.run.watch(loop.model, loop.optimizer, kinds=["adam"])
    loop.step(7)

    assert len(loop.kept.others) == 1
    assert [row.step for row in loop.rows("adam")] == [5, 6, 7]
    assert all(isinstance(record, Measurement) for record in loop.kept.of_kind("adam").records)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kinds": ["hessian"]}, "adam, sign, spectral, got 'hessian'"),
        ({"kinds": "adamw"}, "adam, sign, spectral, got 'adamw'"),
        ({"kinds": ["adam"], "optimizer": None}, "needs the optimizer"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, message):
    model = make_model()
    run, _ = make_kept_run()

    with pytest.raises(ConfigError, match=message):
        run.watch(model, **arguments)


def test_one_kind_needs_no_list():
    loop = Loop("adam")

    for index in range(6):
        loop.step(index)

    assert [row.step for row in loop.rows("adam")] == [5]
