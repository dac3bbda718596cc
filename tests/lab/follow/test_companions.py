"""Betas, epsilon and weight decay that follow the batch, each from its first value."""

import math

import pytest
import torch

from noisescale_core.theory.learning_rate import BatchChange
from noisescale_lab.follow.scheduled_rates import first_values, follow_batch
from scripted_run import Loop, make_optimizer

ALL = ("betas", "epsilon", "weight_decay")


def adamw(**settings):
    return make_optimizer(torch.optim.AdamW, betas=(0.9, 0.99), eps=1e-8, **{"weight_decay": 0.1} | settings)


def test_betas_and_epsilon_follow_the_rules_of_the_square_root():
    first = first_values(adamw().param_groups)

    [group] = follow_batch(ALL, first, "AdamW", BatchChange(64, 256, 1e4), rate_factor=1.4)

    assert group.values["betas"] == pytest.approx((0.6, 0.96))
    assert group.values["eps"] == pytest.approx(1e-8 / 2)


def test_weight_decay_keeps_the_time_over_which_weights_are_averaged_at_the_policy_s_rate():
    first = first_values(adamw().param_groups)

    [group] = follow_batch(ALL, first, "AdamW", BatchChange(64, 256, 1e4), rate_factor=1.4)

    # B / (ε λ) stays: the weights decay by as much over as many examples
    assert 256 / (0.14 * group.values["weight_decay"]) == pytest.approx(64 / (0.1 * 0.1))


def test_only_what_was_asked_for_changes():
    first = first_values(adamw().param_groups)

    [group] = follow_batch(("epsilon",), first, "AdamW", BatchChange(64, 256, 1e4), rate_factor=1.4)

    assert set(group.values) == {"eps"}
    assert group.sentences == ("epsilon 1e-08 to 5e-09 by ε / √k from its first value",)


def test_a_beta_that_the_rule_would_make_negative_stays_and_says_why():
    first = first_values(adamw().param_groups)

    [group] = follow_batch(("betas",), first, "AdamW", BatchChange(64, 64 * 16, 1e6), rate_factor=2.0)

    assert group.values["betas"] == pytest.approx((0.9, 0.84))
    assert "beta1 stays 0.9: The rule ends at k = 10" in group.sentences[0]


def test_an_optimizer_without_a_rule_keeps_its_values():
    first = [{"betas": (0.9, 0.99), "weight_decay": 0.1}]

    [group] = follow_batch(("betas",), first, "Lion", BatchChange(64, 256, 1e4), rate_factor=1.4)

    assert group.values == {"betas": (0.9, 0.99)}


def test_sgd_has_no_betas_to_change():
    first = first_values(make_optimizer(momentum=0.9, weight_decay=0.0).param_groups)

    [group] = follow_batch(ALL, first, "SGD", BatchChange(64, 256, 1e4), rate_factor=1.4)

    assert not group.values


def test_values_go_into_the_groups_and_come_from_the_first_ones_every_time():
    loop = Loop(optimizer=adamw(num_groups=2)).follow(may=("batch", *ALL)).steps(300, phi=65536.0)

    factor = loop.follower.batch_size / 64
    assert len(loop.follower.decisions) >= 2
    for group in loop.optimizer.param_groups:
        assert group["betas"][1] == pytest.approx(1 - factor * 0.01)
        assert group["eps"] == pytest.approx(1e-8 / math.sqrt(factor))
    assert any("beta2 0.99 to" in sentence for sentence in loop.follower.decisions[-1].also)


def test_a_dry_run_names_the_rest_and_leaves_it_alone():
    loop = Loop(optimizer=adamw()).follow(may=("batch", *ALL), dry_run=True).steps(300, phi=65536.0)

    assert loop.optimizer.param_groups[0]["betas"] == (0.9, 0.99)
    assert any("weight_decay 0.1 to" in sentence for sentence in loop.follower.decisions[-1].also)
