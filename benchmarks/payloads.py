"""Batches as the client sends them, encoded beforehand so that a benchmark times the server and not itself."""

import gzip
import json
import random
import time
import zlib
from uuid import UUID

STARTED = float(int(time.time()))
"""Rows are of now, as those of a job that sends while it trains: what comes late costs a server more."""


def run_batch(run_id: UUID, *, name: str, project: str = "benchmark") -> bytes:
    """The first batch of a stream: the `run` record alone."""
    stream = {
        "estimator": "micro_batches",
        "kind": "simple",
        "unit": "examples",
        "units_per_example": 1,
        "loss_reduction": "mean_over_examples",
        "optimizer": "SGD",
        "batch_size_source": "argument",
        "rank": 0,
        "host": None,
        "client_version": "0.1.0",
        "started_at": STARTED,
    }
    body = {
        "proto": 1,
        "run_id": str(run_id),
        "first_seq": 1,
        "last_seq": 1,
        "crc32": 1,
        "sent_at": "2026-11-20T13:02:40Z",
        "run": {"seq": 1, "run": {"project": project, "task": "ingest", "name": name}, "stream": stream},
    }
    return json.dumps(body).encode()


def metrics_batch(run_id: UUID, *, seq: int, step: int, num_names: int) -> bytes:
    """A batch of one record: a value of each of so many metrics."""
    metrics = {
        "seq": [seq] * num_names,
        "step": [step] * num_names,
        "wall_time": [STARTED + step] * num_names,
        "name": [f"metric {number}" for number in range(num_names)],
        "value": [step / (number + 1) for number in range(num_names)],
    }
    body = {
        "proto": 1,
        "run_id": str(run_id),
        "first_seq": seq,
        "last_seq": seq,
        "crc32": seq,
        "sent_at": "2026-11-20T13:02:40Z",
        "metrics": metrics,
    }
    return json.dumps(body).encode()


class MeasurementBatches:
    """Batches of consecutive steps of one stream, with values of full precision.

    The value columns repeat from batch to batch; numbers, steps and times move on.
    """

    def __init__(self, run_id: UUID, rows: int, seed: int, *, compressed: bool = True) -> None:
        rng = random.Random(seed)
        self.run_id, self.rows, self.compressed = run_id, rows, compressed
        trace = [rng.gauss(100, 10) for _ in range(rows)]
        grad = [rng.gauss(1, 0.3) for _ in range(rows)]
        columns: dict[str, list[float]] = {
            "num_updates": [1] * rows,
            "micro_batch_size": [32.0] * rows,
            "num_micro_batches": [8] * rows,
            "global_batch": [256.0] * rows,
            "sum_trace_cov": trace,
            "sum_grad_sq_norm": grad,
            "sum_trace_cov_sq": [x * x for x in trace],
            "sum_grad_sq_norm_sq": [y * y for y in grad],
            "sum_trace_cov_grad_sq_norm": [x * y for x, y in zip(trace, grad, strict=True)],
            "sum_loss": [rng.gauss(2, 0.1) for _ in range(rows)],
            "num_loss": [1] * rows,
            "lr": [0.1] * rows,
            "flags": [0] * rows,
        }
        self._fixed = json.dumps(columns)[1:-1]

    def body(self, first_step: int) -> bytes:
        """The batch whose first row is that step; its seq is the step plus 2, after the run record."""
        steps = range(first_step, first_step + self.rows)
        moving = json.dumps(
            {
                "seq": [step + 2 for step in steps],
                "step": list(steps),
                "wall_time": [STARTED + 0.1 * step for step in steps],
                "examples": [256 * (step + 1) for step in steps],
            }
        )[1:-1]
        head = json.dumps(
            {
                "proto": 1,
                "run_id": str(self.run_id),
                "first_seq": first_step + 2,
                "last_seq": first_step + 1 + self.rows,
                "crc32": zlib.crc32(moving.encode()),
                "sent_at": "2026-11-20T13:02:40Z",
            }
        )[:-1]
        raw = f'{head}, "measurements": {{{moving}, {self._fixed}}}}}'.encode()
        return gzip.compress(raw, compresslevel=1) if self.compressed else raw
