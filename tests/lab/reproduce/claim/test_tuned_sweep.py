import pytest

from noisescale_lab.reproduce.claim.critical_fit import fit
from noisescale_lab.reproduce.claim.effort import QUICK
from noisescale_lab.reproduce.claim.stacked_trial import steps_of
from noisescale_lab.reproduce.claim.tuned_sweep import TunedSweep
from noisescale_lab.reproduce.registry import ALL


@pytest.mark.thorough
def test_batch_sizes_lie_on_both_sides_of_the_critical_one_and_rates_at_no_edge() -> None:
    task = ALL["iris_softmax"]()
    sweep = TunedSweep(task, QUICK, 0, lambda line: None)

    sweep.run()
    found = fit(sweep.points(task.targets[-1]))

    assert found is not None
    assert min(sweep.best) < found.critical_batch < max(sweep.best)
    for batch, best in sweep.best.items():
        rates = [trial.setting.lr for trial in sweep.trials if trial.setting.batch_size == batch]
        assert min(rates) < best.setting.lr < max(rates)
        assert steps_of(best, task.targets[-1], "min") == dict(sweep.points(task.targets[-1]))[batch]
