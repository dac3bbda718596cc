"""The further kinds of noise scale that a job asks for."""

from collections.abc import Sequence

import torch
from torch import Tensor

from noisescale.capture.kinds.adam import AdamKind
from noisescale.capture.kinds.kind import Kind
from noisescale.capture.kinds.sign import SignKind
from noisescale.capture.kinds.spectral import SpectralKind
from noisescale_core.errors import ConfigError


def make_kinds(
    names: Sequence[str], parameters: Sequence[Tensor], optimizer: torch.optim.Optimizer | None
) -> dict[str, Kind]:
    """The further kinds of noise scale by name.

    Raises:
        ConfigError: For a kind that cannot be measured here.
    """
    kinds: dict[str, Kind] = {}
    for name in names:
        if name == "adam":
            if optimizer is None:
                raise ConfigError("kind 'adam' needs the optimizer: pass it to watch()")
            kinds[name] = AdamKind(parameters, optimizer)
        elif name == "sign":
            kinds[name] = SignKind(parameters)
        else:
            kinds[name] = SpectralKind(parameters)
    return kinds
