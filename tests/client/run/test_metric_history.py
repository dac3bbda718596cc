"""What a run keeps of the metrics it logs."""

import itertools
import math

from client_runs import make_kept_run
from noisescale.track.results import MOST_POINTS, MetricHistory


def test_metrics_are_kept_by_name_with_the_steps_they_belong_to():
    run, _ = make_kept_run()

    run.log_metrics(step=3, eval_loss=2.0, accuracy=0.5)
    run.log_metrics(step=7, eval_loss=math.inf)

    (first, second) = run.logged_metrics.of("eval_loss")
    assert first == (3, 2.0)
    assert (second[0], math.isnan(second[1])) == (7, True)
    assert run.logged_metrics.names == ["accuracy", "eval_loss"]
    assert run.logged_metrics.of("unknown") == []


def test_a_long_run_keeps_some_thousand_values_and_the_newest():
    history = MetricHistory()

    for step in range(50_000):
        history.add(step, {"eval_loss": float(step)})

    kept = history.of("eval_loss")
    assert MOST_POINTS / 2 <= len(kept) <= MOST_POINTS
    assert kept[-1] == (49_999, 49_999.0)
    assert all(before < after for (before, _), (after, _) in itertools.pairwise(kept))
