from noisescale.capture.clipping import Clipping as Clipping
from noisescale.capture.kinds.hessian import hessian_values as hessian_values
from noisescale.capture.per_example.proxy_calibration import ProxySums as ProxySums
from noisescale.capture.per_example.proxy_calibration import calibrate as calibrate
from noisescale.capture.sums.device_values import DeviceValues as DeviceValues
from noisescale.capture.sums.step_norms import StepNorms as StepNorms
from noisescale.capture.watch import Watch as Watch
from noisescale.capture.watch_options import WatchOptions as WatchOptions
