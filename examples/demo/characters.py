"""Characters of the Python standard library's own source: a small transformer, trained with Adam."""

import sysconfig
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from demo.tasks import Batch, Task

CONTEXT = 32
VOCABULARY = 96
MAX_BYTES = 3_000_000
WIDTH = 64
HEADS = 4
BLOCKS = 2
HELD_OUT_SEQUENCES = 256


def load() -> Tensor:
    """The source of the standard library's top-level modules as character codes 0…95."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = b"\n".join(file.read_bytes() for file in files)[:MAX_BYTES]
    codes = torch.tensor(list(text), dtype=torch.int64)
    printable = (codes >= 32) & (codes < 127)
    return torch.where(printable, codes - 32, VOCABULARY - 1)


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm_feed_forward = nn.LayerNorm(WIDTH)
        self.feed_forward = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        """Hidden states [B, T, WIDTH] → the same shape."""
        q, k, v = self.qkv(self.norm_attention(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.norm_feed_forward(x))


class CharacterTransformer(nn.Module):
    """Predicts the next character from at most CONTEXT before it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, characters: Tensor) -> Tensor:
        """Character codes [B, T] → logits [B, T, VOCABULARY]."""
        x = self.embedding(characters) + self.position[: characters.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """Mean cross-entropy per character in nats."""
    inputs, targets = batch
    return functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())


def make_task() -> Task:
    """The task, with its text loaded; the last tenth is held out."""
    text = load()
    split = len(text) * 9 // 10
    windows = torch.arange(CONTEXT + 1)

    def cut(starts: Tensor) -> Batch:
        sequences = text[starts[:, None] + windows]
        return sequences[:, :-1], sequences[:, 1:]

    def sample(num_examples: int, generator: torch.Generator) -> Batch:
        return cut(torch.randint(split - CONTEXT, (num_examples,), generator=generator))

    held_out = cut(torch.linspace(split, len(text) - CONTEXT - 1, HELD_OUT_SEQUENCES).long())

    def evaluate(model: nn.Module) -> float:
        with torch.no_grad():
            return float(loss(model, held_out))

    return Task(
        name="characters",
        family="language model",
        example="sequence",
        unit="tokens",
        units_per_example=CONTEXT,
        make_model=CharacterTransformer,
        make_optimizer=lambda model, lr: torch.optim.Adam(model.parameters(), lr=lr),
        sample=sample,
        loss=loss,
        evaluate=evaluate,
    )
