"""Starts a compiled Triton kernel once more, without asking again what it was compiled for.

Triton's own call looks at the type and the alignment of each argument, at every call, to find the compiled kernel: that
takes longer than a small kernel runs. Here the caller says of which sort a call is.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

_COMPILED: dict[tuple[Any, Hashable], Any] = {}
"""By kernel and sort: it belongs to the process, as its devices do."""


def start_again(
    kernel: Any,
    grid: tuple[int, ...],
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    sort: Hashable,
) -> None:
    """Run a kernel on the current device and stream.

    Args:
        kernel: By `triton.jit`.
        grid: Programs along each axis.
        arguments: Its arguments before the constants, in order.
        constants: Its constants by name, in order, all of them at its end.
        options: Of compiling.
        sort: What the compiled kernel depends on beside constants and options: device, types, and whether addresses are
            multiples of 16 bytes. Calls that agree in all of these run the kernel of the first.
    """
    key = kernel, (sort, tuple(constants.values()), tuple(options.values()))
    compiled = _COMPILED.get(key)
    if compiled is None:
        _COMPILED[key] = kernel[grid](*arguments, **constants, **options)  # None where Triton interprets
        return
    compiled[(*grid, 1, 1)[:3]](*arguments, *constants.values())
