import json
import math
from importlib import resources

import pytest

from noisescale_server.analysis.comparison.agreement import agreement, kappa

DOTA_5V5 = "Dota 5v5 (PPO)"
ATARI = "Atari (7 games, A2C)"


def table_1(column):
    """Task → value of a column of Table 1 of McCandlish et al. 2018."""
    values = json.loads(resources.files("noisescale_server").joinpath("data/reference_values.json").read_text())
    return {entry["task"]: entry["value"] for entry in values["values"] if entry["quantity"] == column}


def averages():
    critical, scale = table_1("critical_batch_size_average"), table_1("simple_noise_scale_average")
    return {task: (scale[task], critical[task]) for task in critical if task in scale}


def test_table_1_holds_the_published_correlations():
    """0.765 over the 8 point tasks, 0.755 with Atari at its geometric middle, 0.842 with the bound of Dota 5v5."""
    points = {task: pair for task, pair in averages().items() if not any(isinstance(v, list) for v in pair)}
    bound = (
        table_1("simple_noise_scale_average")[DOTA_5V5],
        table_1("critical_batch_size_average_lower_bound")[DOTA_5V5],
    )
    atari = tuple(math.sqrt(low * high) for low, high in averages()[ATARI])

    eight = agreement(list(points.values()))

    assert eight.num_tasks == 8
    assert eight.r_squared == pytest.approx(0.765, abs=5e-4)
    nine = agreement([*points.values(), atari])
    assert nine.r_squared == pytest.approx(0.755, abs=5e-4)
    assert nine.mean_log10_kappa == pytest.approx(0.09, abs=5e-3)
    assert nine.spread == pytest.approx(7, rel=0.05)
    assert agreement([*points.values(), atari, bound]).r_squared == pytest.approx(0.842, abs=5e-4)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("MNIST", 0.22),
        ("SVHN", 0.13),
        ("CIFAR10", 0.45),
        ("ImageNet (ResNet-50)", 0.50),
        ("Billion Word LM (LSTM)", 0.67),
        ("Dota 1v1 (PPO)", 10),
        ("Autoencoder (SVHN)", 20),
        ("VAE (SVHN)", 20),
    ],
)
def test_kappa_of_each_task_of_table_1(task, expected):
    scale, critical = averages()[task]

    assert kappa(critical_batch=critical, noise_scale=scale) == pytest.approx(expected, abs=0.006)


def test_harder_tasks_have_larger_critical_batches():
    critical = table_1("critical_batch_size_average")

    assert critical["MNIST"] < critical["SVHN"] < critical["ImageNet (ResNet-50)"]
    assert critical[ATARI][1] < critical["Dota 1v1 (PPO)"]
    assert critical["Dota 1v1 (PPO)"] < table_1("critical_batch_size_average_lower_bound")[DOTA_5V5]


def test_a_power_law_without_error_agrees_perfectly_and_kappa_shows_what_r_squared_hides():
    found = agreement([(10.0**i, 5 * 10.0 ** (1.5 * i)) for i in range(7)])

    assert found.r_squared == pytest.approx(1)
    assert found.slope == pytest.approx(1.5)
    assert found.mean_log10_kappa == pytest.approx(math.log10(5) + 1.5)
    assert found.spread == pytest.approx(10 ** math.sqrt(sum((0.5 * i - 1.5) ** 2 for i in range(7)) / 6))
    assert found.median_abs_log10_kappa == pytest.approx(math.log10(5) + 1.5)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(1, 1), (2, 2)], "pairs must hold at least 3 tasks, got 2"),
        ([(1, 1), (2, 2), (3, 0)], "critical_batch must be positive and finite, got 0: compare resolved numbers"),
        ([(1, 1), (1, 2), (1, 3)], "pairs must differ between tasks"),
    ],
)
def test_a_comparison_without_meaning_is_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        agreement(pairs)
