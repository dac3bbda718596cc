"""Bodies of the wire format, version 1; see docs/wire.md. The client has its own copy: it may be older than we are."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, Field

from noisescale_server.api.platform.deps import refuse_control_characters
from noisescale_server.api.platform.schemas import Body, Name, PositiveNumber, refuse_blank
from noisescale_server.api.runs.schemas import RunFields
from noisescale_server.storage.runs.streams import SIMPLE, Kind

VERSION = 1
MAX_RECORDS = 2_000
MAX_METRIC_VALUES = 20_000
MAX_GROUPS = 256
MAX_NOTES = 16

MAX_NUMBER = 2**53 - 1
"""Beyond it JSON readers lose digits: a step or record number that large is a mistake."""

MAX_COUNT = 2**31 - 1
MAX_UNIX_SECONDS = 253_402_300_799.0
"""The last second of the year 9999, the last that a time stamp can hold."""

MAX_SUM = 1e75
MAX_SQUARE = 1e150
MIN_MAGNITUDE = 1e-140
"""Squares and products of sums must neither overflow nor vanish in double precision."""


Seq = Annotated[int, Field(ge=1, le=MAX_NUMBER)]
Step = Annotated[int, Field(ge=0, le=MAX_NUMBER)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
UnixSeconds = Annotated[float, Field(ge=0, le=MAX_UNIX_SECONDS, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
BatchSize = Annotated[float, Field(ge=1e-9, le=1e15, allow_inf_nan=False)]
Sum = Annotated[float, Field(ge=-MAX_SUM, le=MAX_SUM, allow_inf_nan=False)]
Square = Annotated[float, Field(ge=-MAX_SQUARE, le=MAX_SQUARE, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=MAX_SUM, allow_inf_nan=False)]
NotNegativeSquare = Annotated[float, Field(ge=0, le=MAX_SQUARE, allow_inf_nan=False)]
Momentum = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=256), AfterValidator(refuse_control_characters)]

Note = Annotated[
    str, Field(min_length=1, max_length=300), AfterValidator(refuse_control_characters), AfterValidator(refuse_blank)
]
Estimator = Literal[
    "micro_batches",
    "ranks",
    "ranks_and_micro_batches",
    "per_example",
    "layer_norm_proxy",
    "split",
    "norms",
    "nested_groups",
    "none",
]

SeqColumn = Annotated[list[Seq], Field(max_length=MAX_RECORDS)]


class StreamFields(Body):
    """`run.stream`: how the stream measures."""

    estimator: Estimator = "none"
    kind: Kind = SIMPLE
    unit: Name = "examples"
    units_per_example: PositiveNumber = 1.0
    loss_reduction: Literal["mean_over_examples", "mean_over_tokens", "sum"] | None = None
    optimizer: Name | None = None
    batch_size_source: Literal["argument", "inferred", "micro_batch"] | None = None
    measure_every: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    num_ranks: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    notes: Annotated[list[Note], Field(max_length=MAX_NOTES, default_factory=list)]
    rank: Annotated[int, Field(ge=0, le=MAX_COUNT)] = 0
    host: Text | None = None
    client_version: Text | None = None
    started_at: UnixSeconds


class RunRecord(Body):
    """The first record of a stream."""

    seq: Seq
    run: RunFields
    stream: StreamFields


class Measurements(Body):
    """One row = the updates since the previous row; columns of equal length."""

    seq: SeqColumn
    step: list[Step]
    num_updates: list[Annotated[int, Field(ge=1, le=MAX_COUNT)]]
    wall_time: list[UnixSeconds]
    examples: list[Annotated[int, Field(ge=0, le=MAX_NUMBER)] | None]
    micro_batch_size: list[BatchSize | None]
    num_micro_batches: list[Count]
    global_batch: list[BatchSize | None]
    sum_trace_cov: list[Sum | None]
    sum_grad_sq_norm: list[Sum | None]
    sum_trace_cov_sq: list[Square | None]
    sum_grad_sq_norm_sq: list[Square | None]
    sum_trace_cov_grad_sq_norm: list[Square | None]
    sum_loss: list[Sum | None]
    num_loss: list[Count]
    lr: list[Finite | None]
    flags: list[Count]
    num_path_updates: list[Count] | None = None
    sum_update_sq_norm: list[NotNegative | None] | None = None
    update_sq_norm_variance: list[NotNegativeSquare | None] | None = None
    path_sq_distance: list[NotNegative | None] | None = None
    path_start: list[Step | None] | None = None
    momentum: list[Momentum | None] | None = None
    num_promised_updates: list[Count] | None = None
    sum_promised_fall: list[Sum | None] | None = None
    promised_fall_variance: list[NotNegativeSquare | None] | None = None


class Metrics(Body):
    """Values of `log_metrics` calls; columns of equal length, a `seq` may repeat."""

    seq: Annotated[list[Seq], Field(max_length=MAX_METRIC_VALUES)]
    step: list[Step]
    wall_time: list[UnixSeconds]
    name: list[Name]
    value: list[Finite | None]


class Groups(Body):
    """The sums per layer since the stream's last group record; columns of equal length."""

    seq: Seq
    step: Step
    wall_time: UnixSeconds
    names: Annotated[list[Name], Field(min_length=1, max_length=MAX_GROUPS)]
    num_updates: list[Count]
    sum_trace_cov: list[Sum | None]
    sum_grad_sq_norm: list[Sum | None]
    sum_trace_cov_sq: list[Square | None]
    sum_grad_sq_norm_sq: list[Square | None]
    sum_trace_cov_grad_sq_norm: list[Square | None]


class Finish(Body):
    """The last record of a stream."""

    seq: Seq
    status: Literal["finished", "failed"]
    wall_time: UnixSeconds


class Lost(Body):
    """Records that will never come."""

    from_: Annotated[Seq, Field(alias="from")]
    to: Seq
    reason: Annotated[str, Field(min_length=1, max_length=64), AfterValidator(refuse_control_characters)]


class BatchBody(Body):
    """Body of POST /api/v1/streams/{stream_id}/batches."""

    proto: Literal[1]
    run_id: UUID
    first_seq: Seq
    last_seq: Seq
    crc32: Annotated[int, Field(ge=0, le=2**32 - 1)]
    sent_at: AwareDatetime | None = None
    run: RunRecord | None = None
    measurements: Measurements | None = None
    metrics: Metrics | None = None
    groups: Annotated[list[Groups], Field(max_length=MAX_RECORDS, default_factory=list)]
    finish: Finish | None = None
    lost: Annotated[list[Lost], Field(max_length=MAX_RECORDS, default_factory=list)]
