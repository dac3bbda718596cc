"""Ratios of noise scales, of runs that count the same things alone: images are not more or fewer than sequences."""

from collections.abc import Sequence

from dash import html

from noisescale_dashboard.answers.common import Run
from noisescale_dashboard.answers.comparisons import Ratio
from noisescale_dashboard.compare.words import ratio_words, ratios_sentence
from noisescale_dashboard.words.sentences import noun_of


def alike(runs: Sequence[Run]) -> list[int]:
    """Places in `runs[1:]` of those that count what the first one counts."""
    return [place for place, run in enumerate(runs[1:]) if noun_of(run) == noun_of(runs[0])]


def footer(runs: Sequence[Run], names: Sequence[str], ratios: Sequence[Ratio]) -> list[html.Div]:
    """The mean ratio of each run to the first, or that there is none because it counts other things."""
    comparable = alike(runs)
    other = "counts {}, not {}"
    said = [
        ratio_words(ratio.mean) if place in comparable else other.format(noun_of(run), noun_of(runs[0]))
        for place, (run, ratio) in enumerate(zip(runs[1:], ratios, strict=True))
    ]
    return [html.Div([html.B(name), f": {words}"]) for name, words in zip(names[1:], said, strict=True)]


def sentence(runs: Sequence[Run], names: Sequence[str], ratios: Sequence[Ratio], where: str) -> str:
    """What the figure of ratios shows, for those who do not see it."""
    comparable = alike(runs)
    if len(runs) > 1 and not comparable:
        return f"No other run counts {noun_of(runs[0])}."
    return ratios_sentence([names[0], *(names[1:][i] for i in comparable)], [ratios[i] for i in comparable], where)
