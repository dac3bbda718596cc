"""Error of log B̂, bias of each term and coverage of ours and of peers against exact truth; results/truth.csv.

`--smoke` runs a few targets with a hundred replicates and writes nothing.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
from benchmarks.results_file import write_rows
from benchmarks.smoke import IS_SMOKE
from benchmarks.truth import peers_table
from benchmarks.truth.measure import Measurement, OurResult, PeerResult, measure
from benchmarks.truth.peers import Kind
from benchmarks.truth.scores import compare, score
from benchmarks.truth.targets import PLANS

COMMAND = "python benchmarks/truth/benchmark_truth.py"
QUICK_REPLICATES = 100
REFERENCE = 8
"""Groups of ours that peers on whole batches are compared with."""

Row = dict[str, str | int | float]


def rows_of(measurement: Measurement) -> Iterator[Row]:
    """One row an estimator."""
    target = measurement.target
    about: Row = {
        "target": target.name,
        "moving": int(target.is_moving),
        "noise_scale": float(np.median(measurement.truth)),
        "batch_size": target.batch_size,
        "steps": target.num_steps,
        "replicates": len(measurement.truth),
    }
    by_count = {result.group_count: result for result in measurement.ours}
    for ours in measurement.ours:
        yield about | our_row(ours, measurement)
    for peer in measurement.peers:
        yield about | peer_row(peer, by_count[peer.group_count or REFERENCE], measurement)


def our_row(ours: OurResult, measurement: Measurement) -> Row:
    """Errors, bias of both terms and coverage of one way of ours."""
    answers, truth = ours.answers, measurement.truth
    errors = score(answers.value, truth)
    trace_cov = answers.trace_cov_error / measurement.trace_cov.mean()
    grad_sq_norm = answers.grad_sq_norm_error / measurement.grad_sq_norm.mean()
    root = np.sqrt(len(truth))
    return {
        "estimator": ours.name,
        "kind": "ours",
        "rms_log_error": errors.rms,
        "rms_log_error_se": errors.rms_se,
        "median_log_error": errors.median,
        "without_number": errors.without_number,
        "without_number_from_start": float((np.isnan(answers.value) | ~answers.has_signal).mean()),
        "absurd": errors.absurd,
        "resolved": float(answers.is_resolved.mean()),
        "coverage": float(((answers.low <= truth) & (truth <= answers.high)).mean()),
        "trace_cov_bias": float(trace_cov.mean()),
        "trace_cov_bias_se": float(trace_cov.std(ddof=1) / root),
        "grad_sq_norm_bias": float(grad_sq_norm.mean()),
        "grad_sq_norm_bias_se": float(grad_sq_norm.std(ddof=1) / root),
    }


def peer_row(peer: PeerResult, ours: OurResult, measurement: Measurement) -> Row:
    """Errors of a peer, and ours with as many groups on the same replicates."""
    errors = score(peer.noise_scale, measurement.truth)
    shown = compare(ours.answers.value, peer.noise_scale, measurement.truth)
    everything = compare(ours.answers.noise_scale, peer.noise_scale, measurement.truth)
    return {
        "estimator": peer.name,
        "kind": peer.kind,
        "rms_log_error": errors.rms,
        "rms_log_error_se": errors.rms_se,
        "median_log_error": errors.median,
        "without_number": errors.without_number,
        "absurd": errors.absurd,
        "paired_with": ours.name,
        "paired_replicates": shown.replicates,
        "paired_rms_ours": shown.ours,
        "paired_rms_peer": shown.peer,
        "paired_ratio": shown.ratio,
        "paired_ratio_se": shown.ratio_se,
        "ungated_replicates": everything.replicates,
        "ungated_ratio": everything.ratio,
        "ungated_ratio_se": everything.ratio_se,
    }


def show(rows: Sequence[Row]) -> None:
    """Print the rows of one target."""
    first = rows[0]
    print(
        f"\n{first['target']}: B {first['noise_scale']:,.4g}, {first['batch_size']} examples × {first['steps']} steps, "
        f"{first['replicates']} replicates"
    )
    for row in rows:
        line = f"  {row['estimator']:<44}{row['kind']:<14} rms log {row['rms_log_error']:6.3f}"
        line += f"  median {row['median_log_error']:+.3f}  no number {row['without_number']:.3f}"
        if row["kind"] == "ours":
            line += f"  |G|² {row['grad_sq_norm_bias']:+.4f} ± {row['grad_sq_norm_bias_se']:.4f}"
            line += f"  tr Σ {row['trace_cov_bias']:+.4f} ± {row['trace_cov_bias_se']:.4f}"
            line += f"  covers {row['coverage']:.3f}"
        else:
            line += f"  ours ÷ peer {row['paired_ratio']:.3f} ± {row['paired_ratio_se']:.3f}"
            line += f" ({row['ungated_ratio']:.3f} without abstaining)"
        print(line)


def verdict(rows: Sequence[Row]) -> list[str]:
    """What breaks a promise, 1.02 × the best right peer or 1 % of bias, and where the bias is not known to 0.3 %."""
    broken = []
    for row in rows:
        where = f"{row['target']}, {row['estimator']}"
        if row["kind"] == Kind.WITHIN_STEP and float(row["paired_ratio"]) > 1.02:
            broken.append(
                f"{where}: ours has {row['paired_ratio']:.3f} ± {row['paired_ratio_se']:.3f} times its error"
                f" ({row['ungated_ratio']:.3f} ± {row['ungated_ratio_se']:.3f} without abstaining)"
            )
        for term in ("trace_cov", "grad_sq_norm") if row["kind"] == "ours" else ():
            bias, error = float(row[f"{term}_bias"]), float(row[f"{term}_bias_se"])
            if error > 0.003:
                broken.append(f"{where}: bias of {term} is known to {error:.4f} only: {bias:+.4f}")
            elif abs(bias) > 0.01:
                broken.append(f"{where}: bias of {term} {bias:+.4f} ± {error:.4f}")
    return broken


def main() -> None:
    """Measure, print, and write the results unless quick."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="targets whose name holds this; writes nothing")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    start = time.monotonic()
    if not arguments.only:
        table = peers_table.rows(replicates=QUICK_REPLICATES if IS_SMOKE else peers_table.REPLICATES)
        peers_table.show(table)
    rows: list[Row] = []
    for seed, plan in enumerate(PLANS):
        if IS_SMOKE and not plan.is_quick:
            continue
        target = plan.make()
        if arguments.only in target.name:
            of_target = list(rows_of(measure(target, QUICK_REPLICATES if IS_SMOKE else plan.replicates, seed)))
            show(of_target)
            rows += of_target
    print(f"\n{time.monotonic() - start:.0f} s\n", *verdict(rows), sep="\n")
    if not arguments.only:
        write_rows("truth", rows, command=COMMAND)
        write_rows("truth_peers", table, command=COMMAND)


if __name__ == "__main__":
    main()
