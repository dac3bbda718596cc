"""The page that holds the advice against what came true."""

from noisescale_dashboard.answers.record import record as decoded
from noisescale_dashboard.figures.comparison.odds_against_outcomes import odds_against_outcomes
from noisescale_dashboard.record import page as record

DATA = {
    "num_runs": 12,
    "bins": [
        {"low": 0.7, "high": 0.8, "num_answers": 40, "said": 0.75, "came_true": 0.7, "came_true_low": 0.55,
         "came_true_high": 0.82},
        {"low": 0.9, "high": 1.0, "num_answers": 60, "said": 0.97, "came_true": 0.95, "came_true_low": 0.86,
         "came_true_high": 0.98},
    ],
    "records": [
        {"share": 0.1, "num_answers": 60, "decided": 0.8, "right": 0.9, "regret": 0.02, "regret_kept": 0.5,
         "regret_of_price": 0.11},
        {"share": 0.5, "num_answers": 60, "decided": 0.0, "right": None, "regret": 0.01, "regret_kept": 0.5,
         "regret_of_price": 0.11},
    ],
}  # fmt: skip
FOUND = decoded(DATA)


def test_the_first_sentence_says_how_the_surest_odds_came_true():
    assert record.headline(FOUND) == ("12 runs: of 60 changes said to be cheaper with 97 %, 95 % (86 – 98 %) were.")
    alone = decoded({**DATA, "num_runs": 1, "bins": []})
    assert record.headline(alone) == "1 run could be judged; no change had odds of 50 % or more."


def test_the_table_has_a_row_for_each_share_of_the_plan_and_no_number_where_nothing_was_decided():
    head, body = record.table(FOUND.records).children

    rows = [[cell.children for cell in row.children] for row in body.children]
    assert [cell.children for cell in head.children.children] == list(record.HEADS)
    assert rows[0] == ["10 %", "60", "80 %", "90 %", "+2 %", "+50 %", "+11 %"]
    assert rows[1][2:4] == ["0 %", "–"]


def test_the_figure_shows_what_was_said_against_what_came_true_with_its_interval():
    figure = odds_against_outcomes(FOUND.bins, narrow=False)

    honest, found = figure.data
    assert list(honest.x) == list(honest.y)
    assert (list(found.x), list(found.y)) == ([0.75, 0.97], [0.7, 0.95])
    assert [round(end, 2) for end in found.error_y.arrayminus] == [0.15, 0.09]


def test_the_figure_in_words():
    assert record.sentence(FOUND) == ("said 75 %, came true 70 % (55 – 82 %); said 97 %, came true 95 % (86 – 98 %)")
