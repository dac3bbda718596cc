"""Words that strangers meet: every term of the pages and messages is in the glossary, with one meaning."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAID_IN = (
    "dashboard/src/noisescale_dashboard",
    "client/src/noisescale_core/advice",
    "client/src/noisescale/notices",
    "client/src/noisescale/ask",
    "client/src/noisescale/commands",
)
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
RECORD = ROOT / "docs" / "decisions" / "0032-words-for-strangers.md"
FIELD = """
activation checkpointing|AICc|ablation|accumulat|all-reduce|archive|arm|attention|autocorrelation|BatchNorm|belief|
best of them|binding|bootstrap|branch|calibrated|checkpoint|cluster|config|contrastive|covariance|critical batch|
curriculum|cross-entropy|data-parallel|declared lost|device-hour|diverged|doubling time|dry run|efficiency|eigenvalue|
ensemble|epoch|example|Fieller|Fisher information|FSDP|goodput|gradient|heteroscedastic|held-out|Hessian|hysteresis|
ideal step|informed search|interruptible|interval|irreducible|kappa|kurtosis|law|learning rate|ledger|lever|logit|
margin|micro-batch|mixed precision|noise scale|octave|odds|on demand|optimizer|overhead|pace|Pareto|path ratio|
per-example|perplexity|PF-day|pipeline parallel|policy|posterior|preference|profile likelihood|quarantine|r²|ramp|rank|
redundant|regime|regret|reproduction|residual|resolved|rms factor|roofline|schedule|seed|sequence|spectral|spool|spot|
standard deviation|step|stream|sweep|target|tentative|token|trade-off|trial|tuned run|unit|utilisation|warm-up|
weight decay|whisker|widened|window
""".replace("\n", "").split("|")
"""Terms of statistics, training and machines that a page may not use unexplained; those that none uses are a guard."""
ALIASES = {
    "accumulat": "accumulation", "best of them": "best of k", "binding": "binding limit", "kappa": "κ",
    "efficiency": "example_efficiency", "ideal step": "ideal steps", "trade-off": "trade-off curve",
    "Fieller": "Fieller interval", "Pareto": "Pareto front", "irreducible": "irreducible loss",
    "per-example": "per-example norms", "rank": "data-parallel, rank", "spot": "interruptible, spot",
    "law": "law over the loss", "sequence": "sequence, token", "token": "sequence, token",
    "standard deviation": "standard deviation (sd)", "declared lost": "declared loss",
    "Hessian": "b_hessian", "spectral": "kind", "spool": "spool",
}  # fmt: skip
SYMBOLS = {
    "B_crit": "critical batch", "B_opt": "best_batch", "B_noise": "noise_scale", "E_min": "E_min and S_min",
    "S_min": "E_min and S_min", "φ": "noise scale φ", "κ": "κ", "Σ": "tr Σ", "|G|²": "|G|²", "r²": "r²",
}  # fmt: skip
OTHER_GREEK = {"α", "β", "ρ", "σ", "λ", "μ"}
"""Of formulas under "How this is computed", each explained in its own sentence."""


@cache
def said() -> dict[str, list[str]]:
    """What pages, commands and messages say, by file: literals of three words and more, docstrings left out."""
    files = [path for folder in SAID_IN for path in sorted((ROOT / folder).rglob("*.py"))]
    return {str(path.relative_to(ROOT)): list(sentences(ast.parse(path.read_text()))) for path in files}


def sentences(tree: ast.AST) -> Iterator[str]:
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    silent |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in silent:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        else:
            continue
        if len(re.findall(r"[A-Za-z]{2,}", text)) > 2:
            yield text


def glossary_words() -> list[str]:
    rows = [row for row in GLOSSARY.splitlines() if row.startswith("|") and not row.startswith("|---")]
    cells = (re.split(r"(?<!\\)\|", row)[1] for row in rows)
    return [cell.replace("\\|", "|").replace("`", "").strip() for cell in cells]


def test_the_pages_and_messages_are_read() -> None:
    assert sum(map(len, said().values())) > 2_000
    assert any("Raise the batch to" in text for texts in said().values() for text in texts)


@pytest.mark.parametrize("term", FIELD)
def test_a_term_that_pages_and_messages_use_is_in_the_glossary(term: str) -> None:
    used = [path for path, texts in said().items() if any(re.search(rf"\b{term}", text) for text in texts)]
    looked_for = ALIASES.get(term, term).casefold()

    if used:
        assert any(
            looked_for in word.casefold() or looked_for.replace("-", "_") in word for word in glossary_words()
        ), f"{term!r} is said in {used[0]}: give it a row in docs/glossary.md"


def test_every_symbol_is_explained() -> None:
    texts = " ".join(text for texts in said().values() for text in texts)
    found = set(re.findall(r"\b[BES]_(?!HOUR)[a-z]+\b|[α-ωΑ-Ω]|\|G\|²|r²", texts)) - OTHER_GREEK

    assert found <= set(SYMBOLS), found - set(SYMBOLS)
    for symbol in found:
        assert SYMBOLS[symbol] in GLOSSARY.replace("\\|", "|"), symbol


def test_a_word_has_one_meaning() -> None:
    by_code, on_pages = GLOSSARY.split("## Words of the pages")
    for part in (by_code, on_pages):
        rows = [re.split(r"(?<!\\)\|", row)[1] for row in part.splitlines() if row.startswith("|")]
        words = [word.strip(" `") for row in rows[0:] for word in row.split(",") if word.strip(" -`")]
        twice = {word for word, times in Counter(words).items() if times > 1} - {"word"}
        assert not twice, twice


def changed_sentences() -> list[tuple[str, str]]:
    return re.findall(r"^\| (.+?) \| (.+?) \|$", RECORD.read_text(), re.MULTILINE)[2:]


def test_forty_sentences_and_more_were_changed_and_none_came_back() -> None:
    source = " ".join(re.sub(r"\"\s*\n\s*f?\"", "", path.read_text()) for path in sources())

    assert len(changed_sentences()) >= 40
    for before, after in changed_sentences():
        assert before not in source, before
        assert after in source, after


def sources() -> list[Path]:
    parts = ("client/src", "lab/src", "server/src", "dashboard/src")
    return [path for part in parts for path in (ROOT / part).rglob("*.py") if "documentation" not in path.parts]
