"""A decoder of Llama's form (Touvron et al. 2023) at 1.3e9 parameters: RMSNorm, SwiGLU, rotary positions."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.step_overhead.small_gpt import Size

LLAMA_1B3 = Size(width=2048, depth=24, heads=16, vocabulary=32000, context=2048)
"""1.35e9 parameters."""

HIDDEN_FACTOR = 43 / 16
"""5,504 of 2,048, as Llama's rounding gives."""


class Block(nn.Module):
    """Attention and a gated feed-forward network, each behind an RMSNorm."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        hidden = int(size.width * HIDDEN_FACTOR)
        self.heads = size.heads
        self.attention_norm = nn.RMSNorm(size.width, eps=1e-5)
        self.query, self.key, self.value, self.out = (nn.Linear(size.width, size.width, bias=False) for _ in range(4))
        self.feed_forward_norm = nn.RMSNorm(size.width, eps=1e-5)
        self.gate, self.up = (nn.Linear(size.width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, size.width, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """[B, T, width] → the same."""
        normed = self.attention_norm(x)
        query, key, value = (
            layer(normed).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(turned(query, turn), turned(key, turn), value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        normed = self.feed_forward_norm(x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))


def turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """[B, heads, T, D] by rotary positions (Su et al. 2021)."""
    first, second = x.chunk(2, dim=-1)
    cosine, sine = turn
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], dim=-1).to(x.dtype)


class Llama(nn.Module):
    """Token codes in, logits out."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.depth))
        self.norm = nn.RMSNorm(size.width, eps=1e-5)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        half = size.width // size.heads // 2
        rates = 10000.0 ** (-torch.arange(half) / half)
        angles = torch.arange(size.context)[:, None] * rates
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, codes: Tensor) -> Tensor:
        """[B, T] → logits [B, T, vocabulary]."""
        x = self.tokens(codes)
        turn = self.cosine[: codes.shape[1]], self.sine[: codes.shape[1]]
        for block in self.blocks:
            x = block(x, turn)
        return self.head(self.norm(x))
