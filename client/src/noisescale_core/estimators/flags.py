"""The bits that a measurement carries, each explained in `docs/wire.md`."""

from enum import IntFlag


class Flags(IntFlag):
    """Why a value of a row is missing, or what was unusual about its steps."""

    NONFINITE_GRADIENT = 1
    NONFINITE_LOSS = 2
    ONE_SMALL_BATCH = 4
    BATCH_SIZE_UNKNOWN = 8
    UNEQUAL_MICRO_BATCHES = 16
    NO_BACKWARD = 32
    UNMATCHED_GRADIENT = 64
    WEIGHTING_MISMATCH = 128
    COUPLED_EXAMPLES = 256
    PARTIAL_GRADIENTS = 512
    COMPRESSED_GRADIENT = 1024
    HETEROGENEOUS_RANKS = 2048
    DUPLICATED_SMALL_BATCHES = 4096
    LAYER_NORM_PROXY = 8192
    SMALLER_STEP = 16384
    DIFFERENT_SMALL_BATCHES = 32768
    REPEATED_RANKS = 65536
    DEPENDENT_EXAMPLES = 131072
