"""Layers that make an example's gradient depend on the others of its batch."""

from torch import nn


class CoupledExamples:
    """The BatchNorm layers of a model.

    Attributes:
        notes: What everyone should know who reads the model's noise scale.
    """

    def __init__(self, model: nn.Module) -> None:
        named = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        self._layers = [module for _, module in named]
        self.notes: list[str] = []
        if named:
            more = f" and {len(named) - 1} more" if len(named) > 1 else ""
            self.notes.append(
                f"BatchNorm ({named[0][0]}{more}) couples the examples of a micro-batch: the noise scale depends on "
                "the micro-batch's size"
            )

    @property
    def are_there(self) -> bool:
        """Whether the model has such layers."""
        return bool(self._layers)

    @property
    def are_coupled(self) -> bool:
        """Whether one of them works on the statistics of the batch now."""
        return any(layer.training for layer in self._layers)
