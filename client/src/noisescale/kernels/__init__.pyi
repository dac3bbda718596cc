from noisescale.kernels.gradient_sums import GradientSums as GradientSums
from noisescale.kernels.gradient_sums import SignSums as SignSums
from noisescale.kernels.list_sums import MultiTensor as MultiTensor
from noisescale.kernels.preference import PREFERENCE as PREFERENCE
