"""What Hugging Face's `Trainer` divides its losses by, counted for each micro-batch on its own.

Read in transformers 5.23, `Trainer._get_num_items_in_batch`, `training_step` and `compute_loss`: where the model or a
`compute_loss_func` takes `num_items_in_batch`, a micro-batch's loss is a sum over its labels other than -100, divided
by their number in the whole step; elsewhere it is the micro-batch's own mean, divided by the number of micro-batches.
"""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers.loss.loss_utils import LOSS_MAPPING, ForCausalLMLoss
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

IGNORED_LABEL = -100


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside a PEFT model, whose own forward takes anything."""
    inside = getattr(model, "get_base_model", None)
    return inside() if inside is not None and hasattr(model, "peft_config") else model


def takes_item_count(model: nn.Module) -> bool:
    """Whether the `Trainer` hands `num_items_in_batch` to the model's forward."""
    inside = unwrapped(model)
    if hasattr(inside, "accepts_loss_kwargs"):
        return bool(inside.accepts_loss_kwargs)
    parameters = inspect.signature(inside.forward).parameters.values()
    return any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters)


def shifts_labels(model: nn.Module) -> bool:
    """Whether the model's loss compares each position with the next label, so that the first is never one.

    The `Trainer` itself overlooks this where a class is named otherwise, such as `GPT2LMHeadModel`: its divisor counts
    the first labels too, which makes that step's gradient a little smaller and leaves the noise scale as it is.
    """
    inside = unwrapped(model)
    if getattr(getattr(inside, "config", None), "is_encoder_decoder", False):
        return False
    loss_type = getattr(inside, "loss_type", None)
    if loss_type in LOSS_MAPPING:
        return LOSS_MAPPING[loss_type] is ForCausalLMLoss
    return type(inside).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()


def count_labels(inputs: Mapping[str, Any], *, is_shifted: bool) -> Tensor | None:
    """Labels that the loss counts, as a number on their device; None where the model is given none.

    Args:
        inputs: Keyword arguments of the model's forward.
        is_shifted: From `shifts_labels()`.
    """
    labels = inputs.get("shift_labels")
    if labels is None:
        labels = inputs.get("labels")
        if isinstance(labels, Tensor) and is_shifted:
            labels = labels[..., 1:]
    return labels.ne(IGNORED_LABEL).sum() if isinstance(labels, Tensor) else None


def count_rows(grad_logits: Tensor) -> Tensor:
    """Positions that a loss outside of the model counts: those where the gradient of its logits is not 0.

    Label smoothing and `compute_loss_func` take the labels away before the model sees its inputs.

    Args:
        grad_logits: [..., classes].
    """
    largest: Tensor = torch.linalg.vector_norm(grad_logits, float("inf"), dim=-1)
    return largest.count_nonzero()
