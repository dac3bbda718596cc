from noisescale.ask.recommendation import Recommendation
from noisescale_core.advice.question import Question
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


def test_a_sentence_that_is_reason_and_limit_alike_stands_there_once():
    sentence = "10 steps are too few: 50 would do."

    text = printed(reason=sentence, schedule=None, schedule_missing=sentence, limited=limited(None, sentence))

    assert text.count(sentence) == 1


def limited(batch_size, text):
    return {"batch_size": batch_size, "low": None, "high": None, "binding": ["steps"], "text": text, "possible": None}


def test_batches_that_were_asked_for_are_lines_of_their_own():
    text = printed(predictions=predictions_at(32.0, 256.0, 1024.0))

    assert "at 256         100 steps (90 – 120), 2.5 h (2.25 – 3)" in text
    assert "at 32 " not in text
    assert "at 1,024 " not in text


def predictions_at(*batches):
    def banded(value, low, high):
        ends = {"low": low, "high": high}
        return {"value": value, **ends, "statistical": ends, "model": ends, "level": 0.95}

    return {
        "steps_left": 400,
        "assumes": None,
        "batches": [
            {
                "batch_size": batch, "is_present": batch == 32, "is_recommended": batch == 1024,
                "steps": banded(100.0, 90.0, 120.0), "examples": banded(1.0, 1.0, 1.0), "units": banded(1.0, 1.0, 1.0),
                "hours": banded(2.5, 2.25, 3.0), "usd": None, "num_devices": None,
            }
            for batch in batches
        ],
    }  # fmt: skip


def test_impossible_limits_are_printed_though_no_batch_is():
    text = printed(limited=limited(None, "10 steps are too few: 50 would do."))

    assert "limits         10 steps are too few: 50 would do." in text


def test_where_nobody_answered_the_reason_stands_there():
    text = str(Recommendation(reason="There is no server to ask.", note="connection refused"))

    assert text.splitlines() == [
        "No recommendation",
        "  why            There is no server to ask.",
        "  no answer      connection refused",
    ]


def test_an_answer_that_was_refused_is_from_nobody_and_does_not_say_so():
    refused = Recommendation(headline="The question was refused", reason="preference: 2 is above 0.999")

    assert str(refused).splitlines() == ["The question was refused", "  why            preference: 2 is above 0.999"]
