"""Convolutions in one to three dimensions: a linear layer on every window of the padded input.

Groups of channels are separate matrices, so a depthwise convolution is C small linear layers.
"""

# L leading dimension: B examples of m rows, b examples of a slice, C channels, K channel groups, W windows of a row,
# O outputs of a channel group, I weights of one output, S sizes of the input, k sizes of the kernel

from torch import Tensor, nn
from torch.nn import functional

from noisescale.capture.per_example.contributions import Contribution, OuterProducts, SummedTerms
from noisescale.capture.per_example.layers.layer_rule import LayerRule

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d


def contribute(
    module: nn.Module, name: str, activation: Tensor | None, grad_output: Tensor, num_examples: int
) -> Contribution:
    """Of a convolution; input [L, C, ...]."""
    assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    if name == "bias":
        return sum_over_positions(grad_output, num_examples)
    assert activation is not None
    num_rows = len(grad_output) // num_examples
    grad_output_LKOW = grad_output.flatten(2).unflatten(1, (module.groups, -1))
    kept = activation

    def rows(start: int, stop: int) -> tuple[Tensor, Tensor]:
        of_slice = slice(start * num_rows, stop * num_rows)
        window_LKWI = windows(kept[of_slice], module)
        return (
            _rows_of_examples(grad_output_LKOW[of_slice].transpose(2, 3), num_rows),
            _rows_of_examples(window_LKWI, num_rows),
        )

    groups, outputs, inputs = shape(module, name)
    return OuterProducts(
        num_examples=num_examples,
        num_positions=num_rows * grad_output_LKOW.shape[3],
        num_channel_groups=groups,
        num_outputs=outputs,
        num_inputs=inputs,
        is_view=False,
        rows=rows,
    )


def sum_over_positions(grad_output: Tensor, num_examples: int) -> SummedTerms:
    """The contribution to a bias whose channels come second in the output gradients [L, D, ...]."""
    num_rows = len(grad_output) // num_examples
    grad_output_LDW = channels_then_positions(grad_output)
    return SummedTerms(
        num_examples=num_examples,
        num_positions=num_rows * grad_output_LDW.shape[2],
        num_elements=grad_output_LDW.shape[1],
        dtype=grad_output.dtype,
        terms=lambda start, stop: channels_last(grad_output_LDW[start * num_rows : stop * num_rows], num_rows),
    )


def channels_then_positions(value: Tensor) -> Tensor:
    """[L, D, W] of [L, D, ...]; one position where there is none."""
    return value.flatten(2) if value.dim() > 2 else value.unsqueeze(2)


def channels_last(value_LDW: Tensor, num_rows: int) -> Tensor:
    """[b, m W, D] of b examples with m rows [D, W] each."""
    value_bmDW: Tensor = value_LDW.unflatten(0, (-1, num_rows))
    return value_bmDW.transpose(2, 3).flatten(1, 2)


def windows(input_LCS: Tensor, module: Convolution) -> Tensor:
    """What each output position multiplies with the weights: [L, K, W, I]."""
    padding = module._reversed_padding_repeated_twice
    mode = "constant" if module.padding_mode == "zeros" else module.padding_mode
    padded_LCS = functional.pad(input_LCS, padding, mode=mode).contiguous() if any(padding) else input_LCS.contiguous()
    sizes, strides = padded_LCS.shape[2:], padded_LCS.stride()[2:]
    num_windows = [
        (size - dilation * (kernel - 1) - 1) // step + 1
        for size, kernel, step, dilation in zip(sizes, module.kernel_size, module.stride, module.dilation, strict=True)
    ]
    window_LCWk: Tensor = padded_LCS.as_strided(
        (*padded_LCS.shape[:2], *num_windows, *module.kernel_size),
        (
            *padded_LCS.stride()[:2],
            *(stride * step for stride, step in zip(strides, module.stride, strict=True)),
            *(stride * dilation for stride, dilation in zip(strides, module.dilation, strict=True)),
        ),
    ).unflatten(1, (module.groups, -1))
    dimensions = len(sizes)
    of_windows = range(3, 3 + dimensions)
    of_kernel = range(3 + dimensions, 3 + 2 * dimensions)
    window_LKWCk = window_LCWk.permute(0, 1, *of_windows, 2, *of_kernel)
    return window_LKWCk.flatten(2 + dimensions).flatten(2, 1 + dimensions)


def shape(module: nn.Module, name: str) -> tuple[int, ...]:
    """[K, O, I] of the weight, [C] of the bias."""
    assert isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    if name == "bias":
        return (module.out_channels,)
    return module.groups, module.out_channels // module.groups, module.weight[0].numel()


def _rows_of_examples(value_LKWX: Tensor, num_rows: int) -> Tensor:
    """[b K, m W, X]: the rows of an example in a row, channel groups apart."""
    if num_rows == 1:
        return value_LKWX.flatten(0, 1)
    value_bmKWX: Tensor = value_LKWX.unflatten(0, (-1, num_rows))
    return value_bmKWX.transpose(1, 2).flatten(2, 3).flatten(0, 1)


CONVOLUTION = LayerRule(
    parameters=("weight", "bias"),
    contribute=contribute,
    shape=shape,
    num_feature_dimensions=lambda module: len(module.kernel_size) + 1,  # type: ignore[arg-type]
    is_rounded_like_output=True,
)
