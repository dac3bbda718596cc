from noisescale.kernels.multi_tensor.launch import FusedReduction as FusedReduction
