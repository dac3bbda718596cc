"""What a follower knows of the fall that updates promised: of momentum and Adam from the path, of SGD as ever."""

import math

import pytest
import torch
from torch import nn

import noisescale
from client_runs import make_kept_run
from noisescale_core.estimators.path import Promised
from noisescale_lab.follow import look as look_module
from noisescale_lab.follow.books import Books, Seen
from noisescale_lab.follow.memory import Memory, Settings
from noisescale_lab.follow.walk import Span

NUM_STEPS = 120


def first_books(**known):
    memory = Memory.at_start(batch=32, learning_rate=1.0, settings=Settings())
    return Books(10, 20, 320.0, 32, 1.0, memory, 1.0, 1.0, **known)


def followed(make, **watched):
    """A run that is followed without changing anything, and each state of it that the policy was shown."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5))
    run, _ = make_kept_run()
    optimizer = make(model.parameters())
    run.watch(model, optimizer, **watched)
    follower = noisescale.follow(run, optimizer, planned_steps=NUM_STEPS, dry_run=True, progress=lambda _: None)
    data, teacher = torch.Generator().manual_seed(1), torch.randn(20, 5)
    for _ in range(NUM_STEPS):
        losses = []
        for _ in range(2):
            inputs = torch.randn(16, 20, generator=data)
            losses.append(nn.functional.cross_entropy(model(inputs), (inputs @ teacher).argmax(1)))
            (losses[-1] / 2).backward()
        run.log_gradients(loss=float(sum(losses).detach()) / 2)
        optimizer.step()
        optimizer.zero_grad()
        follower.step()
    assert follower.faults.count == 0
    return follower, run


@pytest.fixture
def states(monkeypatch):
    """What the policy was shown."""
    found, advise = [], look_module.advise

    def seen(state, *arguments):
        found.append(state)
        return advise(state, *arguments)

    monkeypatch.setattr(look_module, "advise", seen)
    return found


@pytest.mark.parametrize(
    "make",
    [lambda p: torch.optim.AdamW(p, lr=3e-4), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.8)],
    ids=["AdamW", "momentum"],
)
def test_spans_hold_what_the_path_was_promised_and_the_policy_is_told_the_share_that_came(make, states):
    follower, run = followed(make)
    spans = follower._books.spans

    promised = run.standing().path.promised
    of_steps = promised.total / promised.num_updates * NUM_STEPS
    assert all(span.promised is not None for span in spans[1:])
    assert math.fsum(span.promised or 0.0 for span in spans) == pytest.approx(of_steps, rel=0.25)
    assert math.fsum(span.promised_variance for span in spans) == pytest.approx(
        promised.variance / promised.num_updates**2 * NUM_STEPS**2, rel=0.5
    )
    assert any(state.promise is not None for state in states)


def test_spans_without_a_new_look_share_the_error_of_the_one_before():
    promised = Promised(10.0, 2.0, 0.25)
    books = first_books(spans=(Span(10, 1.0, 0.1, 2.0, 0.25),), seen=Seen(promised_updates=10.0, promised=2.0))

    total, variance = look_module._promised(books, promised, 20.0)

    assert total == 4.0
    assert math.sqrt(0.25 + variance) == pytest.approx(0.5 * 3)


def test_plain_sgd_is_promised_what_all_measured_steps_tell(states):
    follower, _ = followed(lambda p: torch.optim.SGD(p, lr=0.05))
    books = follower._books

    expected = 0.05 * books.seen.grad_sq_norm / books.seen.num_terms * books.steps
    assert math.fsum(span.promised for span in books.spans) == pytest.approx(expected, rel=1e-6)
    assert any(state.promise is not None for state in states)


def test_what_is_not_measured_is_not_made_up():
    follower, _ = followed(lambda p: torch.optim.AdamW(p, lr=3e-4), judge_rate=False)

    assert [span.promised for span in follower._books.spans] == [None] * len(follower._books.spans)


def test_books_with_promises_come_back_from_a_checkpoint_and_older_ones_too():
    follower, _ = followed(lambda p: torch.optim.AdamW(p, lr=3e-4))
    books = follower._books
    state = books.to_state()

    assert type(books).from_state(state) == books
    for name in ("promised", "promised_updates", "promised_variance"):
        del state["seen"][name]
    assert type(books).from_state(state).seen.promised == 0.0
