"""What makes a call tell nothing of its examples."""

from noisescale.capture.per_example.layer_calls import LayerCall


def fault_of(call: LayerCall, examples_per_group: int) -> str | None:
    """Why a call tells nothing of its examples; None where it does."""
    if call.forward is None:
        return (
            f"{call.layer.name} was called outside of the watched model's forward: call the model itself, or "
            "watch a module whose forward() calls the method that you use"
        )
    num_examples = call.forward.num_examples
    if num_examples is None:
        return "the model's input does not tell the number of examples"
    if num_examples % examples_per_group:
        return f"{num_examples} examples are no multiple of examples_per_group={examples_per_group}"
    if call.is_overwritten:
        return f"the input of {call.layer.name} was changed in place after the call"
    if call.replay is not None and call.replay.contradicts(num_examples):
        return f"{call.layer.name} has positions first, and perhaps the model: build it with batch_first=True"
    if call.replay is not None and call.replay.is_late:
        return f"{call.layer.name} was computed before all gradients of its outputs had come"
    return None
