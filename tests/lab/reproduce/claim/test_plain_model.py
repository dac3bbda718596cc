import pytest
import torch

from noisescale_lab.reproduce.claim.plain_model import flat_parameters, plain_model, plain_optimizer
from noisescale_lab.reproduce.registry import ALL

KINDS_OF_MODELS = ["digits_mlp", "charlm_mlp", "char_bigram", "digits_vae_adam", "charlm_transformer"]


@pytest.mark.parametrize("name", KINDS_OF_MODELS)
def test_a_plain_model_says_what_the_stacked_one_says(name: str) -> None:
    task = ALL[name]()
    inputs, _ = task.evaluation

    model = plain_model(task.network, 3)
    expected = task.network.forward(task.network.initial([3]), inputs)[-1][0]

    assert torch.allclose(model(inputs[0]), expected, atol=1e-5)


@pytest.mark.parametrize("name", KINDS_OF_MODELS)
def test_weights_of_a_plain_model_come_back_in_the_order_of_the_stacked_one(name: str) -> None:
    task = ALL[name]()

    parameters = flat_parameters(plain_model(task.network, 5))

    assert torch.equal(parameters, task.network.initial([5])[0])


def test_a_model_without_a_plain_form_is_refused_by_name() -> None:
    class Other:
        num_parameters = 1

        def initial(self, seeds: list[int]) -> torch.Tensor:
            return torch.zeros(len(seeds), 1)

    with pytest.raises(TypeError, match="Other has no plain form"):
        plain_model(Other(), 0)


def test_plain_adam_has_the_constants_of_the_stacked_one() -> None:
    task = ALL["digits_vae_adam"]()

    optimizer = plain_optimizer(task.optimizer, plain_model(task.network, 0), 0.01)

    assert optimizer.defaults["betas"] == (0.9, 0.99)
    assert optimizer.defaults["lr"] == 0.01
