"""Which kernels this process is to use where nobody says otherwise."""

from typing import Literal

Kernels = Literal["auto", "triton", "torch"]


class Preference:
    """What was asked for last; gradients are summed up in too many places to tell each.

    Attributes:
        kernels: "auto": Triton's on CUDA devices, where they work; "triton": wherever they work; "torch": never.
    """

    def __init__(self) -> None:
        self.kernels: Kernels = "auto"


PREFERENCE = Preference()
