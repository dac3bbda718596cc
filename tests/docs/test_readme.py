"""The README's code runs as printed."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

README = (Path(__file__).parents[2] / "README.md").read_text()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, object]:
    """What the reader of the README has: a model, an optimizer, a loader and a loss; no server."""
    monkeypatch.setenv("NOISESCALE_DIR", str(tmp_path))
    monkeypatch.setenv("NOISESCALE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("NOISESCALE_STRICT", "1")
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    return {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loader": [(torch.randn(256, 4), torch.randint(3, (256,))) for _ in range(12)],
        "loss_fn": nn.functional.cross_entropy,
    }


def test_the_training_loop_of_the_readme_runs_and_prints_a_noise_scale(names, capsys):
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL).group(1)

    exec(compile(code, "README.md", "exec"), names)

    assert re.search(r"images", capsys.readouterr().out)


@pytest.mark.parametrize("path", re.findall(r"\]\((docs/[^)]+|examples/[^)]+|benchmarks/[^)]+)\)", README))
def test_every_file_that_the_readme_links_to_exists(path):
    assert (Path(__file__).parents[2] / path).exists()


def test_every_make_target_that_the_readme_names_exists():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()

    for target in set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
