"""Small models of the kinds that people train."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Attention(nn.Module):
    """Causal attention made of linear layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.query_key_value(x).chunk(3, dim=-1)
        scores = query @ key.transpose(1, 2) / math.sqrt(x.shape[-1])
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        return self.out(scores.masked_fill(~mask, -torch.inf).softmax(-1) @ value)


class Block(nn.Module):
    """Attention and a layer of neurons, each behind a normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = Attention(width)
        self.before_neurons = nn.RMSNorm(width)
        self.neurons = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width, bias=False))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.before_attention(x))
        return x + self.neurons(self.before_neurons(x))


class TinyGPT(nn.Module):
    """A decoder like GPT-2: embedding tied with the head, a table of positions looked up once for all examples."""

    def __init__(self, *, vocabulary: int = 13, width: int = 8, length: int = 6, positions: str = "none") -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.kind_of_positions = positions
        if positions == "embedding":
            self.positions = nn.Embedding(length, width)
        elif positions == "parameter":
            self.positions = nn.Parameter(torch.randn(length, width) / 5)
        self.blocks = nn.ModuleList(Block(width) for _ in range(2))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, token: Tensor) -> Tensor:
        x = self.tokens(token)
        if self.kind_of_positions == "embedding":
            x = x + self.positions(torch.arange(token.shape[1]))
        elif self.kind_of_positions == "parameter":
            x = x + self.positions[: token.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.last(x))


def mean_of_tokens(batch_size: int):
    """Next-token loss, a mean over the tokens of a batch of this size."""

    def loss(logits: Tensor, token: Tensor) -> Tensor:
        num_targets = batch_size * (token.shape[1] - 1)
        return (
            functional.cross_entropy(logits[:, :-1].flatten(0, 1), token[:, 1:].flatten(), reduction="sum")
            / num_targets
        )

    return loss


def mean_of_classes(batch_size: int):
    """Cross-entropy, a mean over a batch of this size."""
    return lambda logits, classes: functional.cross_entropy(logits, classes, reduction="sum") / batch_size


def make_conv_net() -> nn.Sequential:
    """Convolutions, group normalisation, in-place activations, a linear head."""
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1),
        nn.GroupNorm(2, 6),
        nn.ReLU(inplace=True),
        nn.Conv2d(6, 6, 3, groups=3, stride=2, bias=False),
        nn.GroupNorm(3, 6),
        nn.SiLU(),
        nn.Flatten(),
        nn.Linear(54, 8),
        nn.ReLU(inplace=True),
        nn.Linear(8, 3),
    )
