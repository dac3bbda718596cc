"""`noisescale.branch` on real little trainings."""

import copy
import math
import random

import numpy as np
import pytest
import torch
from torch import nn

import noisescale
from client_runs import make_kept_run
from noisescale_core.errors import ConfigError

FEATURES, CLASSES = 8, 4


class Training:
    """Softmax regression with a hidden layer on examples that a seed draws; 16 held-out batches."""

    def __init__(self, optimizer="SGD", **settings):
        torch.manual_seed(0)
        self.truth = 2 * torch.randn(FEATURES, CLASSES)
        self.model = nn.Sequential(
            nn.Linear(FEATURES, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, CLASSES)
        )
        self.model[1].register_buffer("calls", torch.zeros(()), persistent=False)
        kind = getattr(torch.optim, optimizer)
        self.optimizer = kind(self.model.parameters(), **({"lr": 0.1} | settings))
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=10)
        self.held_out = [self.examples(torch.Generator().manual_seed(1000 + k), 64) for k in range(16)]
        self.orders = []

    def examples(self, generator, count):
        inputs = torch.randn(count, FEATURES, generator=generator)
        noise = torch.randn(count, CLASSES, generator=generator)
        return inputs, (inputs @ self.truth + noise).argmax(1)

    def train_steps(self, batch_size, lr, num_steps, seed):
        generator = torch.Generator().manual_seed(seed)
        inputs, labels = self.examples(generator, batch_size * num_steps)
        self.orders.append((batch_size, lr, inputs))
        self.model.train()
        for batch, answers in zip(inputs.split(batch_size), labels.split(batch_size), strict=True):
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(batch), answers).backward()
            self.optimizer.step()
            self.model[1].calls += 1
        self.schedule.step()

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            return [float(nn.functional.cross_entropy(self.model(x), y)) for x, y in self.held_out]

    def state(self):
        """Everything that a step changes, as bytes and numbers."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        tensors += [value for state in self.optimizer.state.values() for value in state.values()]
        return (
            [tensor.detach().numpy().tobytes() for tensor in tensors],
            [None if p.grad is None else p.grad.numpy().tobytes() for p in self.model.parameters()],
            [
                {name: value for name, value in group.items() if name != "params"}
                for group in self.optimizer.param_groups
            ],
            [module.training for module in self.model.modules()],
            copy.deepcopy(self.schedule.state_dict()),
            torch.get_rng_state().numpy().tobytes(),
            random.getstate(),
            np.random.get_state()[1].tobytes(),
        )

    def branch(self, **changes):
        said = []
        settings = {
            "batch_size": 8,
            "model": self.model,
            "optimizer": self.optimizer,
            "others": [self.schedule],
            "num_examples": 512,
            "progress": said.append,
        }
        return noisescale.branch(self.train_steps, self.evaluate, **(settings | changes)), said


@pytest.fixture(autouse=True)
def no_active_run(monkeypatch):
    monkeypatch.setattr("noisescale.run.active_run._active", [])


OPTIMIZERS = [("SGD", {"momentum": 0.9}), ("AdamW", {}), ("SGD", {})]


class TestStartState:
    @pytest.mark.parametrize(("optimizer", "settings"), OPTIMIZERS)
    @pytest.mark.parametrize("is_kept_in_file", [False, True])
    def test_it_is_put_back_bit_for_bit(self, optimizer, settings, is_kept_in_file, tmp_path):
        training = Training(optimizer, **settings)
        training.train_steps(8, 0.1, 20, seed=5)
        before = training.state()

        training.branch(batch_sizes=[16, 32], keep_in=tmp_path / "start.pt" if is_kept_in_file else None)

        assert training.state() == before
        assert list(tmp_path.iterdir()) == []

    def test_an_optimizer_that_has_not_stepped_has_no_state_afterwards(self):
        training = Training("AdamW")

        training.branch(batch_sizes=[16])

        assert training.optimizer.state == {}

    def test_the_training_goes_on_as_if_nothing_had_been(self):
        branched, undisturbed = Training("AdamW"), Training("AdamW")
        for training in (branched, undisturbed):
            torch.manual_seed(3)
            training.train_steps(8, 0.1, 5, seed=5)
        states = torch.get_rng_state()

        branched.branch(batch_sizes=[16], learning_rates=[0.1, 0.3])
        branched.train_steps(8, 0.1, 5, seed=6)
        torch.set_rng_state(states)
        undisturbed.train_steps(8, 0.1, 5, seed=6)

        assert branched.state()[0] == undisturbed.state()[0]

    def test_it_is_put_back_where_an_arm_raises(self):
        training = Training()
        training.train_steps(8, 0.1, 5, seed=5)
        before = training.state()

        def fail(batch_size, lr, num_steps, seed):
            training.train_steps(batch_size, lr, num_steps, seed)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            noisescale.branch(
                fail, training.evaluate, batch_size=8, model=training.model, optimizer=training.optimizer,
                checkpoint=noisescale.Checkpoint(others=[training.schedule]), batch_sizes=[16], num_steps=3,
            )  # fmt: skip

        assert training.state() == before

    def test_any_framework_branches_with_its_own_snapshot(self):
        weights = {"w": 4.0}

        def train_steps(batch_size, lr, num_steps, seed):
            weights["w"] *= (1 - lr) ** num_steps

        result = noisescale.branch(
            train_steps, lambda: [weights["w"], weights["w"] + 1], batch_size=8, lr=0.1, learning_rates=[0.2],
            num_steps=5, progress=lambda text: None,
            checkpoint=noisescale.Checkpoint(snapshot=lambda: dict(weights), restore=weights.update),
        )  # fmt: skip

        assert weights == {"w": 4.0}
        assert [found.losses[0] for found in result.arms] == pytest.approx([4 * 0.9**5, 4 * 0.8**5])


class TestArms:
    def test_every_arm_sees_the_same_examples_in_the_same_order(self):
        training = Training()

        training.branch(batch_sizes=[16, 64])

        assert [batch_size for batch_size, _, _ in training.orders] == [8, 16, 64]
        assert all(torch.equal(inputs, training.orders[0][2]) for _, _, inputs in training.orders)

    @pytest.mark.parametrize(("optimizer", "rates"), [("SGD", [0.1, 0.2, 0.4]), ("AdamW", [0.1, 0.1 * 2**0.5, 0.2])])
    def test_the_learning_rate_follows_the_batch_size(self, optimizer, rates):
        training = Training(optimizer)

        result, _ = training.branch(batch_sizes=[16, 32])

        assert [found.arm.lr for found in result.arms] == pytest.approx(rates)
        assert [found.arm.num_steps for found in result.arms] == [64, 32, 16]

    def test_the_optimizer_has_the_rate_of_the_arm_and_groups_keep_their_ratio(self):
        training = Training()
        training.optimizer.param_groups[0]["lr"] = 0.1
        training.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))], "lr": 0.01})
        seen = []

        def train_steps(batch_size, lr, num_steps, seed):
            seen.append([group["lr"] for group in training.optimizer.param_groups])

        noisescale.branch(
            train_steps, training.evaluate, batch_size=8, model=training.model, optimizer=training.optimizer,
            learning_rates=[0.2], num_steps=1, progress=lambda text: None,
        )  # fmt: skip

        assert seen == [pytest.approx([0.1, 0.01]), pytest.approx([0.2, 0.02])]

    @pytest.mark.parametrize("rule", ["StepLR", "LambdaLR"])
    def test_a_schedule_that_steps_inside_an_arm_is_said_with_the_way_out(self, rule):
        """StepLR cuts the rate of an arm, LambdaLR puts the base rate back in place of the arm's."""
        training = Training()
        schedules = torch.optim.lr_scheduler
        training.schedule = (
            schedules.StepLR(training.optimizer, step_size=1, gamma=0.5)
            if rule == "StepLR"
            else schedules.LambdaLR(training.optimizer, lambda step: 1.0)
        )

        result, said = training.branch(batch_sizes=[16], others=[training.schedule])

        assert result.arms[1].lr_at_end == pytest.approx(0.1)
        warned = [line for line in said[:-1] if "a schedule stepped inside it" in line]
        assert "the arm of batch 16 began with learning rate 0.2 and ended with 0.1" in warned[-1]
        assert f"Attention: {warned[-1].removeprefix('branch: ')}" in said[-1]

    def test_an_arm_that_keeps_its_rate_is_not_warned_of(self):
        training = Training()

        result, said = training.branch(batch_sizes=[16, 32])

        assert [found.lr_at_end for found in result.arms] == [None] * 3
        assert not any("schedule" in line for line in said)

    def test_an_arm_that_diverges_is_worse_and_the_others_are_judged(self):
        training = Training()

        result, said = training.branch(learning_rates=[1e30, 0.1, 0.05])

        assert [found.comparison and found.comparison.verdict for found in result.arms][1] == "worse"
        assert math.isnan(result.arms[1].mean_loss)
        assert "diverged" in said[-1]


class TestMeaning:
    def test_a_batch_that_wastes_examples_is_worse_and_the_critical_batch_is_below(self):
        """One step on 512 examples against 64 steps on 8: the same examples, far less progress."""
        training = Training()

        result, said = training.branch(batch_sizes=[16, 512], learning_rates=[0.1])

        assert [found.comparison.verdict for found in result.arms[1:]][-1] == "worse"
        assert result.local_critical_batch.high is not None
        assert result.local_critical_batch.high <= 512
        assert result.meaning in said[-1]

    def test_equal_steps_say_nothing_of_the_critical_batch(self):
        training = Training()

        result, _ = training.branch(batch_sizes=[16], num_examples=None, num_steps=10)

        assert result.local_critical_batch is None
        assert result.cost.examples == 10 * 8 + 10 * 16

    def test_a_better_learning_rate_is_named(self):
        training = Training(lr=0.001)

        result, _ = training.branch(learning_rates=[0.1])

        assert result.meaning.startswith("Batch 8 with learning rate 0.1 ends lower than the present setting by")

    def test_the_noise_scale_of_the_moment_is_part_of_the_result(self):
        training = Training()
        run, _ = make_kept_run()
        for _ in range(40):
            run.log_norms(small_batch_size=1, big_batch_size=8, small_sq_norm=33.0, big_sq_norm=5.0)

        result, said = training.branch(batch_sizes=[16, 512], learning_rates=[0.1], run=run)

        assert result.point.step == 39
        assert result.point.noise_scale.value == pytest.approx(32.0)
        assert result.kappa.high == pytest.approx(result.local_critical_batch.high / 32.0)
        assert "Step 39: noise scale 32" in said[-1]

    def test_the_cost_is_in_dollars_where_a_price_is_known(self):
        training = Training()

        result, said = training.branch(batch_sizes=[16], usd_per_hour=3600.0)

        assert result.cost.usd == pytest.approx(result.cost.seconds)
        assert "USD" in said[-1]
        assert (result.cost.steps, result.cost.examples) == (64 + 32, 1024)


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"batch_sizes": [24]}, r"whole batches of every arm, got 512 and batch 24: use 504"),
            ({"batch_sizes": [16], "num_steps": 4}, "give num_steps or num_examples"),
            ({"batch_sizes": [16], "num_examples": None}, "give num_steps or num_examples"),
            ({}, "needs an arm beside the present setting"),
            ({"batch_sizes": [8]}, "needs an arm beside the present setting"),
            ({"learning_rates": [-1.0]}, "arms must be positive"),
            ({"batch_size": 0, "batch_sizes": [16]}, "batch_size and lr must be positive"),
            ({"batch_sizes": [16], "level": 1.0}, "level must be from 0.5 to 0.9999"),
            ({"batch_sizes": [16], "model": None}, "needs model and optimizer to come back to"),
            ({"batch_sizes": [16], "snapshot": dict}, "needs model and optimizer to come back to"),
            ({"batch_sizes": [16], "model": None, "optimizer": None}, "knows no learning rate"),
        ],
    )
    def test_an_argument_that_makes_no_branch_is_named(self, changes, message):
        with pytest.raises(ConfigError, match=message):
            Training().branch(**changes)

    def test_a_single_held_out_batch_is_refused(self):
        training = Training()

        with pytest.raises(ConfigError, match="same held-out batches, two or more, got 1 and 1"):
            noisescale.branch(
                training.train_steps, lambda: [1.0], batch_size=8, model=training.model,
                optimizer=training.optimizer, batch_sizes=[16], num_steps=1, progress=lambda text: None,
            )  # fmt: skip

    def test_a_run_that_watches_is_refused_since_arms_would_be_its_steps(self):
        training = Training()
        run, _ = make_kept_run()
        run.watch(training.model, training.optimizer)

        with pytest.raises(ConfigError, match=r"call run.unwatch\(\) before"):
            training.branch(batch_sizes=[16], run=run)

        run.unwatch()
        result, _ = training.branch(batch_sizes=[16], run=run)
        assert len(result.arms) == 2
