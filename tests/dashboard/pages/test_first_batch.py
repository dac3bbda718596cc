"""A language model's first batch, from published sweeps."""

import json

from dashboard_callbacks import Callbacks

PLAN = {
    "first-tokens.value": 20, "first-params.value": "", "first-sequence.value": 2048, "first-optimizer.value": "adamw",
    "first-mixture.checked": False, "first-worth.value": "0.5",
}  # fmt: skip


async def answer(callbacks: Callbacks, **changed) -> str:
    values = PLAN | {f"first-{name}": value for name, value in changed.items()}
    found = await callbacks.post("first-answer.children", values)
    return json.dumps(found["first-answer"]["children"], ensure_ascii=False)


async def test_the_batch_stands_with_its_interval_in_sequences_and_tokens_and_with_what_it_rests_on(callbacks):
    said = await answer(callbacks)

    for words in ("Start with 1,024 sequences", "398", "4,630", "(95", "Where money matters", "Zhang et al."):
        assert words in said, words


async def test_parameters_stand_for_twenty_tokens_each_where_no_tokens_are_said(callbacks):
    assert "Start with 1,024 sequences" in await answer(callbacks, **{"tokens.value": "", "params.value": 1})


async def test_who_values_tokens_gets_a_smaller_batch(callbacks):
    assert "Start with 384 sequences" in await answer(callbacks, **{"worth.value": "0.2"})


async def test_what_is_no_plan_asks_for_one_and_what_the_server_refuses_says_why(callbacks):
    nothing = await answer(callbacks, **{"tokens.value": ""})
    words = await answer(callbacks, **{"tokens.value": "many"})

    assert "Type how many tokens" in nothing
    assert "Type how many tokens" in words
