from noisescale.recommending.question import Question
from noisescale.recommending.recommendation import Recommendation
from recommendation_answers import RepeatingServer, asks, make_answer


def printed(**fields):
    return str(asks(RepeatingServer(body=make_answer(**fields))).of_run("7d1f", Question()))


def test_it_reads_as_a_decision_its_reason_and_what_goes_with_it():
    text = printed()

    assert text.splitlines()[0] == "Raise the batch to 1,024"
    assert "why            The noise scale is 31 × the batch of 32 sequences" in text
    assert "32 → 1,024 sequences = 1,050,000 tokens (best 992, 95 % interval 140 – 7,200;" in text
    assert "of the measurement alone 874 – 1,120)" in flat(text)
    assert "0.1 → 0.164 (0.14 – 0.18); SGD, noise-scale rule" in text
    assert "weight_decay   0.1 → 0.2 (linear)" in text
    assert "512 from step 400, lr 0.14; 1,024 from step 711, lr 0.16. The noise scale has gone" in flat(text)
    assert "Predicted: −94 % (−97 % to −60 %) steps" in text
    assert "12,000 sequences, 12 % of those spent (9 % – 15 %)" in text
    assert "next           Confirm it with a short branch" in text
    assert text.splitlines()[-1] == "  from           the server, step 399"


def flat(text):
    return " ".join(text.split())


def test_it_fits_a_terminal_and_says_nothing_twice():
    lines = printed().splitlines()

    assert max(len(line) for line in lines) <= 110
    assert len(set(lines)) == len(lines)


def test_no_number_is_printed_where_nothing_can_be_said():
    nothing = dict.fromkeys(
        ("interval", "statistical_interval", "recommended_batch_size", "learning_rate", "waste", "rescaling")
    )

    text = printed(
        **nothing,
        effect=None,
        limited=None,
        schedule=None,
        decision="insufficient_evidence",
        headline="Not enough evidence yet",
        reason="Only 3 measured steps so far; the first estimate takes 8.",
        schedule_missing="A schedule needs a resolved noise scale and a known batch size.",
        warnings=[],
    )

    assert text.splitlines() == [
        "Not enough evidence yet",
        "  why            Only 3 measured steps so far; the first estimate takes 8.",
        "  schedule       A schedule needs a resolved noise scale and a known batch size.",
        "  next           Confirm it with a short branch from a checkpoint.",
        "  from           the server, step 399",
    ]


def test_impossible_limits_are_printed_though_no_batch_is():
    text = printed(limited={"batch_size": None, "binding": ["steps"], "text": "10 steps are too few: 50 would do."})

    assert "limits         10 steps are too few: 50 would do." in text


def test_where_nobody_answered_the_reason_stands_there():
    text = str(Recommendation(reason="There is no server to ask.", note="connection refused"))

    assert text.splitlines() == [
        "No recommendation",
        "  why            There is no server to ask.",
        "  from           nobody; connection refused",
    ]
