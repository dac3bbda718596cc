"""The recipes' code parses, their links lead somewhere, and their formulas give the terms of the step."""

import ast
import re
from pathlib import Path

import pytest
import torch

from client_runs import brute_force_terms, make_kept_run

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ["integrations.md", "recipes.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_code_parses(page):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)

    assert len(blocks) >= 3
    for block in blocks:
        ast.parse(block)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text())

    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


NUM_RANKS, NUM_ACCUMULATED, SIZE = 4, 2, 3


def make_gradients():
    """Of each example, over two parameters: [ranks, micro-batches, examples, elements]."""
    generator = torch.Generator().manual_seed(0)
    return 0.3 + torch.randn(NUM_RANKS, NUM_ACCUMULATED, SIZE, 7, generator=generator, dtype=torch.float64)


def logged_terms(**norms):
    run, kept = make_kept_run()
    run.log_norms(**norms)
    [row] = kept.rows()
    return row.sum_trace_cov, row.sum_grad_sq_norm


@pytest.mark.parametrize("is_per_token", [False, True])
def test_the_formula_for_megatron_gives_the_terms_of_its_ranks(is_per_token):
    """Its buckets hold the mean over the micro-batches of the rank, or the sum over its tokens; times a scale."""
    gradients, scale = make_gradients(), 1024.0
    num_examples = gradients.shape[:3].numel()
    own = gradients.mean((1, 2)) if not is_per_token else gradients.sum((1, 2))
    buckets = own * scale
    undone = (NUM_RANKS / num_examples) ** 2 if is_per_token else 1.0
    total = buckets.square().sum()

    measured = logged_terms(
        num_small=NUM_RANKS,
        small_batch_size=num_examples / NUM_RANKS,
        big_batch_size=num_examples,
        sum_small_sq_norm=float(total) * undone / scale**2,
        big_sq_norm=float(gradients.mean((0, 1, 2)).square().sum()),
    )

    assert measured == pytest.approx(brute_force_terms([gradients.flatten(0, 2)], [NUM_ACCUMULATED * SIZE] * NUM_RANKS))


def test_the_formula_for_deepspeed_gives_the_terms_of_its_micro_batches():
    """What its hooks see: each micro-batch's mean gradient divided by the accumulation count, times a scale."""
    gradients, scale = make_gradients(), 1024.0
    seen = gradients.mean(2) / NUM_ACCUMULATED * scale
    total = seen.square().sum()
    num_small, num_examples = NUM_RANKS * NUM_ACCUMULATED, gradients.shape[:3].numel()

    measured = logged_terms(
        num_small=num_small,
        small_batch_size=SIZE,
        big_batch_size=num_examples,
        sum_small_sq_norm=float(total) * (NUM_ACCUMULATED / scale) ** 2,
        big_sq_norm=float(gradients.mean((0, 1, 2)).square().sum()),
    )

    assert measured == pytest.approx(brute_force_terms([gradients.flatten(0, 2)], [SIZE] * num_small))
