"""Every setting of the table of architectures, in all cases of the sums that it is for; the device is played."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

from client.kernels import multi_tensor_cases
from noisescale.kernels.multi_tensor import kernel, launch, tuned
from noisescale.kernels.operations import Operation

METHODS = {
    Operation.SQ_NORMS: "sq_norms",
    Operation.DOTS: "dots",
    Operation.ACCUMULATE: "accumulate",
    Operation.PRECONDITIONED: "preconditioned",
    Operation.SIGNS: "sign_statistics",
}

CASES = {
    f"{major}.{minor}, {name}": ((major, minor), operation, element_size, name)
    for (major, minor), settings in tuned.TUNED.items()
    for operation, element_size in settings
    for name, case in multi_tensor_cases.CASES.items()
    if case.method == METHODS[operation]
    and element_size in {dtype.itemsize for dtype in multi_tensor_cases.each(case, case.dtypes)}
}
"""By architecture and case."""


def check(name: str) -> dict[str, object]:
    """What a case gives on a device of that architecture, and whether the setting of the table summed it up.

    Args:
        name: One of `CASES`.
    """
    capability, operation, element_size, case = CASES[name]
    used = set()
    start_again = launch.start_again

    def noted(
        started: Any, grid: Any, arguments: Any, constants: Mapping[str, Any], options: Mapping[str, Any], **more: Any
    ) -> None:
        if started is kernel.reduce_chunks:
            used.add(tuned.Setting(constants["BLOCK"], options["num_warps"]))
        start_again(started, grid, arguments, constants, options, **more)

    with (
        mock.patch.object(tuned, "capability_of", return_value=capability),
        mock.patch.object(launch, "start_again", noted),
    ):
        found = multi_tensor_cases.check(case, "triton", "cpu")
    return found | {"is by the table": tuned.TUNED[capability][operation, element_size] in used}
