"""Which rule measures which layer type. A new layer: a file with its rule, and a line here."""

from torch import nn

from noisescale.capture.per_example.layers.conv import CONVOLUTION
from noisescale.capture.per_example.layers.embedding import EMBEDDING
from noisescale.capture.per_example.layers.group_norm import GROUP_NORM
from noisescale.capture.per_example.layers.layer_norm import (
    LAYER_NORM,
    RMS_NORM,
    looks_like_layer_norm,
    looks_like_rms_norm,
)
from noisescale.capture.per_example.layers.layer_rule import LayerRule
from noisescale.capture.per_example.layers.linear import LINEAR
from noisescale.capture.per_example.layers.multihead_attention import MULTIHEAD_ATTENTION
from noisescale.capture.per_example.layers.prelu import PRELU
from noisescale.capture.per_example.layers.replayed import CELLS, OTHERS, RECURRENT, REPLAYED
from noisescale.capture.per_example.layers.transposed_linear import TRANSPOSED_LINEAR, is_transposed_linear

RULES: dict[type[nn.Module], LayerRule] = {
    nn.Linear: LINEAR,
    nn.Conv1d: CONVOLUTION,
    nn.Conv2d: CONVOLUTION,
    nn.Conv3d: CONVOLUTION,
    nn.Embedding: EMBEDDING,
    nn.LayerNorm: LAYER_NORM,
    nn.RMSNorm: RMS_NORM,
    nn.GroupNorm: GROUP_NORM,
    nn.PReLU: PRELU,
    nn.MultiheadAttention: MULTIHEAD_ATTENTION,
    **dict.fromkeys((*RECURRENT, *CELLS, *OTHERS), REPLAYED),
}


def rule_of(module: nn.Module) -> LayerRule | None:
    """The rule of a layer; None where there is none, also for a subclass that computes something else."""
    for layer_type, rule in RULES.items():
        if isinstance(module, layer_type) and type(module).forward is layer_type.forward:
            return rule
    if is_transposed_linear(module):
        return TRANSPOSED_LINEAR
    if looks_like_layer_norm(module):
        return LAYER_NORM
    return RMS_NORM if looks_like_rms_norm(module) else None
