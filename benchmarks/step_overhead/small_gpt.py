"""A decoder-only transformer for steps of a realistic mix of layers (Radford et al. 2019), trained on random tokens."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class Size:
    """Of a small GPT and its micro-batches.

    Attributes:
        width: Of the residual stream; a multiple of `heads`.
        depth: Blocks.
        heads: Of attention.
        vocabulary: Tokens there are.
        context: Tokens of a sequence.
    """

    width: int
    depth: int
    heads: int
    vocabulary: int
    context: int


GPT2_SMALL = Size(width=768, depth=12, heads=12, vocabulary=50257, context=1024)

FOR_CPU = Size(width=128, depth=2, heads=4, vocabulary=512, context=16)


class Block(nn.Module):
    """Attention and a feed-forward network, each behind a LayerNorm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.heads
        self.attention_norm = nn.LayerNorm(size.width)
        self.query_key_value = nn.Linear(size.width, 3 * size.width)
        self.projection = nn.Linear(size.width, size.width)
        self.feed_forward_norm = nn.LayerNorm(size.width)
        self.up = nn.Linear(size.width, 4 * size.width)
        self.down = nn.Linear(4 * size.width, size.width)

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, width] → the same."""
        parts = self.query_key_value(self.attention_norm(x)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).flatten(-2))
        return x + self.down(functional.gelu(self.up(self.feed_forward_norm(x))))


class SmallGPT(nn.Module):
    """Token codes in, logits out; the head has weights of its own, so that every layer has per-example norms."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.context, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.depth))
        self.norm = nn.LayerNorm(size.width)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)

    def forward(self, codes: Tensor) -> Tensor:
        """[B, T] → logits [B, T, vocabulary]."""
        places = torch.arange(codes.shape[1], device=codes.device).expand(codes.shape)
        x = self.tokens(codes) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
