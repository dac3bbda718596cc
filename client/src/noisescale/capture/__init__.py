"""From a model's backward pass to squared gradient norms; the only folder that imports torch, and only on first use."""

from typing import TYPE_CHECKING

from noisescale.lazy import exports

if TYPE_CHECKING:
    from noisescale.capture.clipping import Clipping
    from noisescale.capture.kinds.hessian import hessian_values
    from noisescale.capture.per_example.proxy_calibration import ProxySums, calibrate
    from noisescale.capture.values.device_values import DeviceValues
    from noisescale.capture.values.step_norms import StepNorms
    from noisescale.capture.watch import Watch
    from noisescale.capture.watch_options import WatchOptions

_MODULES = {
    "Watch": "noisescale.capture.watch",
    "WatchOptions": "noisescale.capture.watch_options",
    "Clipping": "noisescale.capture.clipping",
    "ProxySums": "noisescale.capture.per_example.proxy_calibration",
    "calibrate": "noisescale.capture.per_example.proxy_calibration",
    "hessian_values": "noisescale.capture.kinds.hessian",
    "DeviceValues": "noisescale.capture.values.device_values",
    "StepNorms": "noisescale.capture.values.step_norms",
    "squared_norms": "noisescale.kernels.squared_norms",
}

__getattr__, __dir__ = exports(__name__, _MODULES)

__all__ = [
    "Clipping",
    "DeviceValues",
    "ProxySums",
    "StepNorms",
    "Watch",
    "WatchOptions",
    "calibrate",
    "hessian_values",
]
