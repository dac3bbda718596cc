"""Tiny language models for Hugging Face's `Trainer`, what went into its steps, and the truth about them."""

import copy

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, TrainerCallback

VOCABULARY, LENGTH, NUM_MICRO_BATCHES, MICRO_BATCH_SIZE = 29, 12, 4, 2


def make_llama():
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2
    )
    return LlamaForCausalLM(config)


def make_gpt2():
    torch.manual_seed(0)
    no_dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    sizes = {"vocab_size": VOCABULARY, "n_positions": LENGTH, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, **no_dropout, bos_token_id=0, eos_token_id=0))


def make_sequences(num=32):
    """Sequences whose last tokens do not count: each micro-batch has another number of labels."""
    generator = torch.Generator().manual_seed(1)
    sequences = []
    for index in range(num):
        tokens = torch.randint(0, VOCABULARY, (LENGTH,), generator=generator)
        labels = tokens.clone()
        labels[2 + index % (LENGTH - 2) :] = -100
        sequences.append({"input_ids": tokens, "labels": labels})
    return sequences


class SeenSteps(TrainerCallback):
    """Weights before each step, and the micro-batches that went into it."""

    def __init__(self):
        self.models, self.micro_batches = [], [[]]

    def collate(self, rows):
        if len(self.micro_batches[-1]) == NUM_MICRO_BATCHES:
            self.micro_batches.append([])
        batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        self.micro_batches[-1].append(batch)
        return dict(batch)

    def on_step_begin(self, args, state, control, model, **_):
        model = copy.deepcopy(model)
        model._forward_hooks.clear()
        self.models.append(model)


def gradient_of(model, loss):
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return torch.cat([gradient.double().flatten() for gradient in gradients])


def terms(gradients, shares, num_examples):
    """tr Σ and |G|² from the mean gradients of small batches with these shares of the examples.

    |G|² is the mean of g_j · g_k over all pairs of examples j, k of different small batches.
    """
    weighted = sum(p * (g @ g) for p, g in zip(shares, gradients, strict=True))
    mean = sum(p * g for p, g in zip(shares, gradients, strict=True))
    trace_cov = num_examples * (weighted - mean @ mean) / (len(gradients) - 1)
    own = sum(p * p * (g @ g) for p, g in zip(shares, gradients, strict=True))
    return float(trace_cov), float((mean @ mean - own) / (1 - sum(p * p for p in shares)))


def token_mean_loss(model, batch, smoothing=0.0):
    logits = model(input_ids=batch["input_ids"]).logits[:, :-1].flatten(0, 1)
    labels = batch["labels"][:, 1:].flatten()
    return nn.functional.cross_entropy(logits.float(), labels, ignore_index=-100, label_smoothing=smoothing)
