from noisescale.kernels.list_sums import MultiTensor as MultiTensor
from noisescale.kernels.operations import GradientSums as GradientSums
from noisescale.kernels.operations import SignSums as SignSums
from noisescale.kernels.preference import PREFERENCE as PREFERENCE
