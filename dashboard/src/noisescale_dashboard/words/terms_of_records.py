"""Terms of a training loop and of what it sends."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noisescale_dashboard.words.term import MCCANDLISH, Term

RECORDED: Final[Mapping[str, Term]] = MappingProxyType(
    {
        "step": Term(
            "step",
            "One update of the parameters, however many micro-batches it is made of.",
            named=("step",),
        ),
        "batch": Term(
            "batch",
            "All examples that one step sees, over all micro-batches and devices.",
            named=("global_batch",),
        ),
        "measuring": Term(
            "way of measuring",
            "Where the small batches come from that are compared with the whole one.",
            "Micro-batches of a step, devices, or single examples. Two batch sizes are needed: small ones hold "
            "more noise, and the difference is tr Σ.",
            f"{MCCANDLISH}, appendix A.1",
            named=("estimator", "num_ranks", "small_batch_size", "big_batch_size"),
        ),
        "overhead": Term(
            "overhead",
            "The share of training time that measuring may take; it sets every how many steps is measured.",
            "Settings of init(): overhead, or measure_every for a fixed number of steps.",
            named=("overhead", "measure_every"),
        ),
        "loss_mean": Term(
            "mean or sum of a loss",
            "What the training loop divides its loss by: a factor in it is a factor in every squared gradient.",
            named=("loss_reduction",),
        ),
        "stream": Term(
            "stream",
            "What one process has sent to one run; a job that was resumed has several.",
            named=("stream",),
        ),
        "ledger": Term(
            "ledger",
            "The count of a stream's records: each one is stored, declared lost with a reason, or rejected.",
            named=("ledger", "lost", "declared loss"),
        ),
    }
)
