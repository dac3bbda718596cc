"""Models that benchmarks train: small transformers over 96 characters."""

from torch import Tensor, nn
from torch.nn import functional

CHARACTERS = 96
NUM_BLOCKS = 4
NUM_HEADS = 4


class Transformer(nn.Module):
    """Four of torch's own blocks: 0.8 M parameters at width 128, 10 M at 448."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, NUM_HEADS, 4 * width, dropout=0.0, batch_first=True)
            for _ in range(NUM_BLOCKS)
        )
        self.head = nn.Linear(width, CHARACTERS)

    def forward(self, characters: Tensor) -> Tensor:
        """Character codes [B, T] → logits [B * T, characters]."""
        x = self.embedding(characters)
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(0, 1)


class Block(nn.Module):
    """A block of linear layers: `nn.MultiheadAttention` has no per-example norms."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.query_key_value, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.neurons = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """[B, T, width] → the same."""
        heads = self.query_key_value(self.norms[0](x)).unflatten(-1, (3, NUM_HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(functional.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.neurons(self.norms[1](x))


class CausalTransformer(nn.Module):
    """As nanoGPT has it, embedding and head tied: 0.1 M parameters at width 48, 0.8 M at 128, 3.2 M at 256."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(CHARACTERS, width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(NUM_BLOCKS)))
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, CHARACTERS, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, characters: Tensor) -> Tensor:
        """Character codes [B, T] → logits [B * T, characters]."""
        return self.head(self.last(self.blocks(self.embedding(characters)))).flatten(0, 1)
