"""A sweep's answer survives its file, and what is known is not swept again."""

import pytest

from noisescale_lab.reproduce.advice import sweep as references
from noisescale_lab.reproduce.advice.sweep import Reference, Tuned

KNOWN = Reference("iris_softmax", 0.2, (Tuned(2, 0.5, 100.0), Tuned(8, 1.0, 40.0)), 20.0, 8.0)


def test_a_reference_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "references.csv"

    references.write(file, {"iris_softmax": KNOWN, "unknown": KNOWN})

    assert references.read(file) == {"iris_softmax": KNOWN}


def test_nothing_is_known_without_a_file(tmp_path):
    assert references.read(tmp_path / "references.csv") == {}


def test_only_what_is_missing_is_swept_and_written(tmp_path, monkeypatch):
    file, swept = tmp_path / "references.csv", []
    references.write(file, {"iris_softmax": KNOWN})

    def sweep(task, target, *, seeds, price):
        swept.append((task.name, target, tuple(seeds), price))
        return Reference(task.name, target, KNOWN.tuned, 20.0, 8.0)

    monkeypatch.setattr(references, "sweep", sweep)

    found = references.complete(file, ["iris_softmax", "digits_softmax"], seeds=(1, 2))

    assert swept == [("digits_softmax", 0.12, (1, 2), 1.0)]
    assert references.read(file) == found
    assert found["iris_softmax"] == KNOWN


def test_the_best_batch_is_the_one_that_costs_least_at_the_price():
    cheap, dear = (Reference("task", 0.2, KNOWN.tuned, 20.0, 8.0, price_factor=factor) for factor in (0.01, 100.0))

    assert (cheap.best.batch, dear.best.batch) == (2, 8)
    assert cheap.cost(KNOWN.tuned[0]) == pytest.approx(100 * (0.08 + 2))
