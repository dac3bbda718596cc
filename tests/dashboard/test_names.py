"""Names of runs side by side."""

import pytest

from noisescale_dashboard.words.names import cut_in_the_middle, short_names, told_apart


def test_what_all_names_begin_with_is_left_out_up_to_a_separator():
    names = ["cifar10-resnet18-b2048-lr0.1-s1", "cifar10-resnet18-b2048-lr0.2-s1", "cifar10-resnet18-b512-lr0.1-s2"]

    assert told_apart(names) == ["…b2048-lr0.1-s1", "…b2048-lr0.2-s1", "…b512-lr0.1-s2"]


def test_short_names_stay_whole():
    assert told_apart(["digits-b256", "digits-b2048"]) == ["digits-b256", "digits-b2048"]


def test_names_that_would_be_alike_stay_whole():
    names = ["a" * 20 + "1" + "b" * 20, "a" * 20 + "2" + "b" * 20]

    assert told_apart(names) == names


@pytest.mark.parametrize("length", range(30))
def test_a_long_name_keeps_both_ends_and_is_no_longer_than_asked(length):
    short = cut_in_the_middle("x" * length + "end", 12)

    assert len(short) <= 12
    assert short.endswith("end")


def test_names_of_a_list_keep_both_ends():
    names = ["cifar10-resnet18-b2048-lr0.1-s1", "gpt-350m-fineweb-edu-adamw-s7", "digits"]

    assert short_names(names, at_most=16) == ["cifar10…lr0.1-s1", "gpt-350…adamw-s7", "digits"]


def test_names_that_the_cut_makes_alike_show_where_they_differ():
    names = [f"cifar10-resnet18-cosine-b{batch}-weight-decay-0.0005-seed1" for batch in (64, 128, 1024)]

    assert short_names(names, at_most=20) == ["cifar10-resne…b64…", "cifar10-resne…b128…", "cifar10-resne…b1024…"]


def test_the_same_name_twice_is_short_twice():
    assert len(set(short_names(["a" * 40] * 2, at_most=12))) == 1


def test_names_alike_in_form_keep_the_words_that_differ():
    names = [
        f"2026-11-{day:02d}_14-03-55_vit_b16_augreg_b{batch}_lr{lr}" for day, batch, lr in ((8, 64, 0.1), (16, 32, 3))
    ]

    assert told_apart(names) == ["…08…b64_lr0.1", "…16…b32_lr3"]


def test_each_name_of_a_long_list_is_another_one():
    names = [
        f"cifar10-resnet18-cosine-b{batch}-lr{lr}-wd0.0005-seed{seed}"
        for batch in (32, 64)
        for lr in (0.0003, 0.001)
        for seed in range(1, 20)
    ]

    short = short_names(names, at_most=27)

    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= 27
