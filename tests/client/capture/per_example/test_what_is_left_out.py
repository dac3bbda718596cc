"""What cannot be measured is left out and named, before a wrong number comes out."""

import pytest
import torch
from torch import nn

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms
from client.capture.per_example.models_of_examples import TinyGPT, mean_of_classes, mean_of_tokens
from noisescale_core.errors import ConfigError


def test_batch_normalisation_is_refused_for_good():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(48, 3))

    norms = make_norms(model)

    assert norms.covered == []
    assert norms.message == (
        "per-example norms cover 0 of 6 parameters, 0 % of their elements. "
        "never: 1 (BatchNorm2d makes each example's gradient depend on the "
        "others: use GroupNorm or LayerNorm); micro-batches measure the whole model."
    )


def test_batch_normalisation_that_is_switched_on_later_gives_no_number():
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3, affine=False)).eval()
    norms = make_norms(model)
    inputs = torch.randn(5, 4)

    model(inputs).square().sum().backward()
    frozen = norms.take()
    model.train()
    model(inputs).square().sum().backward()
    training = norms.take()

    assert frozen is not None
    assert training is None
    assert norms.is_incomplete
    assert "batch normalisation" in norms.reason


def test_layers_and_settings_without_a_formula_are_named_by_kind():
    model = nn.ModuleDict(
        {
            "bag": nn.EmbeddingBag(4, 4),
            "drops": nn.GRU(4, 4, 2, batch_first=True, dropout=0.1),
            "counted": nn.Embedding(5, 4, scale_grad_by_freq=True),
            "fine": nn.Linear(4, 4),
        }
    )

    norms = make_norms(model)

    assert norms.covered == ["fine.weight", "fine.bias"]
    assert norms.message == (
        "per-example norms cover 2 of 12 parameters, 6.7 % of their elements. "
        "not yet: bag.weight (EmbeddingBag has no formula here); "
        "switch off: drops.weight_ih_l0, drops.weight_hh_l0, drops.bias_ih_l0 and 5 more "
        "(dropout between the layers of GRU); switch off: counted.weight (scale_grad_by_freq=True of Embedding)."
    )


def test_parameters_that_are_sharded_over_devices_are_left_out():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3, bias=False))
    model[0].weight.device_mesh = "cpu:0,1"  # stands in for a DTensor, which needs a process group

    norms = make_norms(model)

    assert norms.covered == ["0.bias", "1.weight"]
    assert "use instead: 0.weight (sharded over devices: micro-batches or ranks)" in norms.message


def test_a_step_that_the_graph_does_not_take_apart_leaves_its_parameter_out():
    class Normalised(nn.Conv1d):
        def forward(self, x):
            return nn.functional.conv1d(x, self.weight / self.weight.norm(), self.bias)

    torch.manual_seed(0)
    model = nn.Sequential(Normalised(2, 3, 2), nn.Flatten(), nn.Linear(12, 3))
    inputs, classes = torch.randn(6, 2, 5), torch.arange(6) % 3
    norms = make_norms(model)

    taken = []
    for _ in range(2):
        mean_of_classes(6)(model(inputs), classes).backward()
        taken.append(norms.per_example())

    assert taken[0] is None
    assert norms.covered == ["2.weight", "2.bias"]
    assert "0.weight (used by Div, which has no formula here)" in norms.message
    assert "0.bias (used by Convolution, which has no formula here)" in norms.message
    assert_equal(taken[1], brute_force(model, inputs, classes, mean_of_classes(6), norms.covered), 1e-5)


def test_a_parametrized_weight_is_left_out_and_its_bias_measured():
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))

    norms = make_norms(layer)

    assert norms.covered == ["bias"]
    assert "parametrizations.weight.original0" in norms.message


def step_with_penalty(model, norms, *, has_penalty):
    inputs, classes = torch.randn(6, model.in_features), torch.randint(0, 3, (6,))
    loss = mean_of_classes(6)(model(inputs), classes)
    if has_penalty:
        loss = loss + 0.1 * model.weight.square().sum()
    loss.backward()
    return norms.take()[0].isnan().tolist()


def test_a_use_outside_of_the_layer_that_begins_later_comes_out_as_not_a_number():
    """The first backward passes are over: to read the check would wait for the device."""
    torch.manual_seed(0)
    model = nn.Linear(20000, 3)
    norms = make_norms(model)

    are_missing = [step_with_penalty(model, norms, has_penalty=step == 3) for step in range(5)]

    assert are_missing == [[False, False]] * 3 + [[True, False]] + [[False, False]]


def test_a_small_parameter_is_checked_at_every_16th_backward_and_missing_until_it_passes():
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    norms = make_norms(model)

    are_missing = [step_with_penalty(model, norms, has_penalty=10 <= step < 20)[0] for step in range(40)]

    assert are_missing == [False] * 16 + [True] * 16 + [False] * 8


def test_an_ignored_backward_leaves_no_mark():
    torch.manual_seed(0)
    model = nn.Linear(20000, 3)
    norms = make_norms(model)
    step_with_penalty(model, norms, has_penalty=False)
    step_with_penalty(model, norms, has_penalty=False)

    (0.1 * model.weight.square().sum() + model(torch.randn(6, 20000)).sum()).backward()
    norms.clear()

    assert step_with_penalty(model, norms, has_penalty=False) == [False, False]


def test_rows_that_may_be_in_another_order_are_left_out():
    class TimeFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x):
            rows = self.inner(x.transpose(0, 1).reshape(-1, 4))
            return self.head(rows.view(x.shape[1], x.shape[0], 4).mean(0))

    torch.manual_seed(0)
    model, inputs, classes = TimeFirst(), torch.randn(6, 5, 4), torch.randint(0, 3, (6,))
    norms = make_norms(model)

    for _ in range(2):
        mean_of_classes(6)(model(inputs), classes).backward()
        assert norms.take() is None

    assert norms.covered == ["head.weight", "head.bias"]
    assert "examples in its first dimension" in norms.message


def test_a_layer_called_outside_of_the_models_forward_gives_no_number():
    model, inputs, classes = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)), torch.randn(6, 4), torch.arange(6) % 3
    norms = make_norms(model)

    mean_of_classes(6)(model[1](model[0](inputs)), classes).backward()

    assert norms.take() is None
    assert norms.is_incomplete
    assert "outside of the watched model's forward: call the model itself, or watch a module" in norms.reason


def test_a_module_around_an_agents_method_is_measured():
    """The way out that docs/per_example.md names."""

    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic = nn.Linear(4, 3), nn.Linear(4, 1)

        def get_action_and_value(self, observations):
            return self.actor(observations), self.critic(observations)

    class Update(nn.Module):
        def __init__(self, agent):
            super().__init__()
            self.agent = agent

        def forward(self, observations):
            return self.agent.get_action_and_value(observations)

    torch.manual_seed(0)
    update, inputs, classes = Update(Agent()), torch.randn(6, 4), torch.arange(6) % 3
    norms = make_norms(update)

    logits, value = update(inputs)
    (mean_of_classes(6)(logits, classes) + value.square().mean()).backward()

    sq_norm_P, num_examples = norms.take()
    expected = torch.zeros(4, dtype=torch.float64)
    for row, label in zip(inputs.split(1), classes.split(1), strict=True):
        logits, value = update(row)
        loss = (nn.functional.cross_entropy(logits, label) + value.square().mean()) / 6
        gradients = torch.autograd.grad(loss, list(update.parameters()))
        expected += torch.stack([gradient.double().square().sum() for gradient in gradients])
    assert num_examples == 6
    assert sq_norm_P.tolist() == pytest.approx(expected.tolist(), rel=1e-5)


class LayerNorm(nn.Module):
    """As nanoGPT writes it, with an optional bias."""

    def __init__(self, num_elements, *, has_bias, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(num_elements) + 0.5)
        self.bias = nn.Parameter(torch.zeros(num_elements)) if has_bias else None
        self.hidden_eps = eps

    def forward(self, x):
        return nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.hidden_eps)


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_layer_norm_of_the_programs_own_is_measured(has_bias):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), LayerNorm(8, has_bias=has_bias), nn.Linear(8, 3)).double()
    inputs, classes = torch.randn(6, 4, dtype=torch.float64), torch.arange(6) % 3
    norms = make_norms(model)

    mean_of_classes(6)(model(inputs), classes).backward()

    assert norms.message is None
    assert_equal(norms.per_example(), brute_force(model, inputs, classes, mean_of_classes(6), norms.covered), 1e-10)


def test_one_with_another_formula_gives_no_number():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), LayerNorm(8, has_bias=False, eps=0.1), nn.Linear(8, 3)).double()
    norms = make_norms(model)

    for _ in range(2):
        mean_of_classes(6)(model(torch.randn(6, 4, dtype=torch.float64)), torch.arange(6) % 3).backward()
        assert norms.take() is None

    assert "1.weight" not in norms.covered


def test_a_batch_that_does_not_divide_into_groups_gives_no_number():
    model, inputs, classes = nn.Linear(4, 3), torch.randn(5, 4), torch.arange(5) % 3
    norms = make_norms(model, examples_per_group=2)

    mean_of_classes(5)(model(inputs), classes).backward()

    assert norms.take() is None
    assert "no multiple of examples_per_group=2" in norms.reason


def test_groups_of_no_examples_are_refused():
    with pytest.raises(ConfigError, match="examples_per_group must be at least 1, got 0"):
        make_norms(nn.Linear(4, 3), examples_per_group=0)


def test_the_proxy_covers_normalisations_only():
    torch.manual_seed(0)
    model, token, loss = TinyGPT().double(), torch.randint(0, 13, (5, 6)), mean_of_tokens(5)
    norms = make_norms(model, layers="norm_layers")

    loss(model(token), token).backward()
    found = norms.per_example()

    assert norms.covered == [
        name for name, _ in model.named_parameters() if any(part in name for part in ("before", "last"))
    ]
    assert norms.message is None
    assert_equal(found, brute_force(model, token, token, loss, norms.covered), 1e-10)


def test_a_model_without_normalisations_has_no_proxy():
    norms = make_norms(nn.Linear(4, 3), layers="norm_layers")

    assert norms.covered == []
    assert "no trainable normalisation" in norms.message


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_rounding_of_many_terms_of_one_sign_is_not_taken_for_a_use_outside_of_the_layer(dtype):
    for seed in range(6):
        torch.manual_seed(seed)
        model = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 1024)).to(dtype)
        norms = make_norms(model)
        weights = torch.randn(1024, dtype=dtype) * (1 + torch.randn(2, 256, 1, dtype=dtype) / 5)

        (model(torch.randn(2, 256, 32, dtype=dtype)) * weights).sum().backward()

        assert norms.take() is not None
        assert norms.message is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_alone_is_never_taken_for_a_use_outside_of_the_layer(dtype):
    """Many terms, in all precisions, and biases whose gradient is nothing but rounding, as that of attention's keys."""
    torch.manual_seed(0)
    model = TinyGPT(width=16, length=32).to(dtype)
    token, loss = torch.randint(0, 13, (16, 32)), mean_of_tokens(16)
    norms = make_norms(model)

    for _ in range(3):
        loss(model(token), token).backward()
        taken = norms.take()

    assert norms.message is None
    assert taken is not None
    assert taken[0].isfinite().all()
