import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisescale_core.theory.trade_off import TradeOff
from noisescale_server.analysis.recommendation.definitions import DEFINED_BY, DefinedCriticalBatch, Definition

RUN = TradeOff(min_steps=1000, min_examples=800_000, target="loss 2.5")
WITH_A_SHARE = sorted(set(Definition) - {Definition.HALF_EFFICIENCY, Definition.LOCAL_LOSS_TOLERANCE})
FROM = {Definition.OVERHEAD_FROM_BATCH: {"from_batch": 32.0}}
HALF = DefinedCriticalBatch(800.0, Definition.HALF_EFFICIENCY, "loss 2.5", "sequences")


def test_at_the_batch_of_20_percent_overhead_examples_are_20_percent_more_than_their_minimum():
    found = HALF.to(Definition.EXAMPLE_OVERHEAD, share=0.2)

    assert found.value == pytest.approx(160)
    assert RUN.examples(found.value) == pytest.approx(1.2 * RUN.min_examples)


def test_zhangs_batch_takes_a_fifth_more_steps_than_perfect_scaling_from_256_sequences():
    """0.20 B_crit + 307 sequences; not 0.20 B_crit, which is from an infinitely small batch."""
    found = HALF.to(Definition.OVERHEAD_FROM_BATCH, share=0.2, from_batch=256)

    assert found.value == pytest.approx(0.2 * 800 + 307.2)
    assert RUN.steps(found.value) == pytest.approx(1.2 * RUN.steps(256) * 256 / found.value)
    assert "2410.21676" in DEFINED_BY[Definition.OVERHEAD_FROM_BATCH]
    assert "2410.21676" not in DEFINED_BY[Definition.EXAMPLE_OVERHEAD]


def test_zhangs_batch_gives_back_the_critical_batch_that_it_was_made_from():
    found = HALF.to(Definition.OVERHEAD_FROM_BATCH, share=0.2, from_batch=256)

    assert found.to(Definition.HALF_EFFICIENCY).value == pytest.approx(800)


def test_at_80_percent_example_efficiency_the_batch_is_a_quarter():
    found = HALF.to(Definition.EXAMPLE_EFFICIENCY, share=0.8)

    assert found.value == pytest.approx(200)
    assert RUN.min_examples / RUN.examples(found.value) == pytest.approx(0.8)


@given(share=st.floats(1e-3, 0.999))
def test_each_definition_holds_on_the_trade_off_curve(share):
    plateau = HALF.to(Definition.PLATEAU, share=share).value
    perfect = HALF.to(Definition.PERFECT_SCALING, share=share).value
    efficient = HALF.to(Definition.EXAMPLE_EFFICIENCY, share=share).value

    assert RUN.steps(plateau) == pytest.approx((1 + share) * RUN.min_steps)
    assert RUN.steps(perfect) * perfect == pytest.approx((1 + share) * RUN.min_examples)
    assert RUN.min_examples / RUN.examples(efficient) == pytest.approx(share)


@given(
    first=st.sampled_from(WITH_A_SHARE),
    second=st.sampled_from(WITH_A_SHARE),
    shares=st.tuples(st.floats(0.01, 0.99), st.floats(0.01, 0.99)),
)
def test_conversions_chain_and_keep_target_and_unit(first, second, shares):
    once = HALF.to(first, share=shares[0], **FROM.get(first, {}))
    back = once.to(second, share=shares[1], **FROM.get(second, {})).to(Definition.HALF_EFFICIENCY)

    assert back.value == pytest.approx(HALF.value)
    assert (back.target, back.unit, back.definition) == (HALF.target, HALF.unit, HALF.definition)


def test_the_published_definitions_differ_by_a_factor_of_50():
    assert HALF.to(Definition.PLATEAU, share=0.1).value == pytest.approx(
        50 * HALF.to(Definition.EXAMPLE_OVERHEAD, share=0.2).value
    )


def test_every_definition_is_put_into_words():
    assert set(DEFINED_BY) == set(Definition)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: DefinedCriticalBatch(4096, Definition.LOCAL_LOSS_TOLERANCE, "600B tokens", "documents", 0.01).to(
                Definition.HALF_EFFICIENCY
            ),
            "definition must follow from the trade-off .* got local_loss_tolerance: measure it anew",
        ),
        (lambda: HALF.to(Definition.LOCAL_LOSS_TOLERANCE, share=0.01), "got local_loss_tolerance"),
        (lambda: HALF.to(Definition.PLATEAU), "share must be given for plateau, got None: the maximum useful batch"),
        (lambda: HALF.to(Definition.EXAMPLE_EFFICIENCY, share=1.2), "share must be between 0 and 1"),
        (
            lambda: DefinedCriticalBatch(8, Definition.HALF_EFFICIENCY, "t", "images", 0.2),
            "share must be left out for half",
        ),
        (
            lambda: HALF.to(Definition.OVERHEAD_FROM_BATCH, share=0.2),
            "from_batch must be given for overhead_from_batch",
        ),
        (
            lambda: HALF.to(Definition.PLATEAU, share=0.2, from_batch=8),
            "from_batch must be left out for plateau, got 8",
        ),
        (
            lambda: DefinedCriticalBatch(300, Definition.OVERHEAD_FROM_BATCH, "t", "s", 0.2, 256).to(
                Definition.HALF_EFFICIENCY
            ),
            "value must be above 307.2",
        ),
        (
            lambda: DefinedCriticalBatch(8, Definition.HALF_EFFICIENCY, "", "images"),
            "target must name the performance level",
        ),
        (lambda: DefinedCriticalBatch(0, Definition.HALF_EFFICIENCY, "t", "images"), "value must be positive"),
    ],
)
def test_a_critical_batch_that_cannot_be_compared_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
