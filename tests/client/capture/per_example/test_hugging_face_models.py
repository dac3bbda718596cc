"""Models as people train them, from Hugging Face: all that is measured equals one backward per example."""

import pytest
import torch
import transformers

from client.capture.per_example.brute_force_examples import assert_equal, brute_force, make_norms

SIZES = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
B, T = 3, 7


def make_gpt2():
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, **dropout, **ends)
    return transformers.GPT2LMHeadModel(config)


MODELS = {
    "GPT-2": (make_gpt2, lambda: torch.randint(0, 50, (B, T))),
    "Llama": (
        lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, max_position_embeddings=16)),
        lambda: torch.randint(0, 50, (B, T)),
    ),
    "BERT": (
        lambda: transformers.BertForSequenceClassification(
            transformers.BertConfig(**SIZES, **NO_DROPOUT, max_position_embeddings=16)
        ),
        lambda: torch.randint(0, 50, (B, T)),
    ),
    "ViT": (
        lambda: transformers.ViTForImageClassification(
            transformers.ViTConfig(**SIZES, **NO_DROPOUT, image_size=16, patch_size=8)
        ),
        lambda: torch.randn(B, 3, 16, 16),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_hugging_face_model_is_measured_whole(name):
    torch.manual_seed(0)
    make, make_inputs = MODELS[name]
    model, inputs = make().train(), make_inputs()
    weights = torch.randn_like(model(inputs).logits)
    norms = make_norms(model)

    def loss(output, weight):
        return (output.logits.sin() * weight).sum() / B

    for _ in range(2):  # a table of positions is found out in the first, and followed in the graph from then on
        loss(model(inputs), weights).backward()
        found = norms.per_example()

    assert norms.covered == [name for name, _ in model.named_parameters()]
    assert norms.message is None
    assert_equal(found, brute_force(model, inputs, weights, loss, norms.covered), 1e-5)
