"""The README's code runs as printed, and what it leads to is there."""

import re
from pathlib import Path

import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """What the reader of the README has: a model, an optimizer, a loader and a loss; no server."""
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NOISESCALE_STRICT", "1")
    torch.manual_seed(0)
    digits = load_digits()
    images, labels = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    chosen = [torch.randint(len(images), (1024,)) for _ in range(40)]
    return {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loader": [(images[one], labels[one]) for one in chosen],
        "loss_fn": nn.functional.cross_entropy,
    }


def test_the_training_loop_of_the_readme_runs_and_prints_what_it_says(names, capsys):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)
    said = re.search(r"```text\n(.*?)```", README, re.DOTALL).group(1)

    exec(compile(code, "README.md", "exec"), names)

    assert shape(capsys.readouterr().out) == shape(said)


def shape(text):
    """The text without its numbers, which differ a little between machines."""
    return re.sub(r"\d[\d,.]*", "#", text)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\(((?!https?:)[^)#]+)", README))))
def test_every_file_that_the_readme_links_to_exists(path):
    assert (ROOT / path).exists()


def test_every_make_target_that_the_readme_names_exists():
    makefile = (ROOT / "Makefile").read_text()

    for target in set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_readme_is_a_door_and_not_a_lab_book():
    assert README.count("\n") <= 130
