"""Two gloo ranks take the same decisions at the same steps."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from places import with_support

pytestmark = [pytest.mark.slow, pytest.mark.processes]


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory):
    """What both ranks found, by scenario."""
    folder = tmp_path_factory.mktemp("ranks")
    script = Path(__file__).with_name("gloo_follow.py")
    environment = os.environ | {"PYTHONPATH": with_support(), "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, script, str(rank), folder],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    try:
        outputs = [rank.communicate(timeout=120)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(outputs)[-6000:]
    both = [json.loads((folder / f"result-{rank}.json").read_text()) for rank in range(2)]
    return {name: [of_rank[name] for of_rank in both] for name in both[0]}


def test_the_ranks_of_a_job_change_together_and_to_the_right_batch(of_ranks):
    first, second = of_ranks["a_job_of_two_ranks"]

    assert first == second
    assert len(first["sizes"]) >= 1
    assert first["sizes"][-1] == pytest.approx((128 * 128) ** 0.5, rel=0.55)  # from 16: what is left is not sure to pay
    assert first["sizes"][-1] % 8 == 0


def test_what_the_first_rank_sees_decides_for_all(of_ranks):
    first, second = of_ranks["only_the_first_rank_knows_a_noise_scale"]

    assert first == second
    assert len(first["decisions"]) >= 1


def test_a_first_rank_that_fails_keeps_nobody_waiting_and_goes_on_later(of_ranks):
    (failed, later), of_second = of_ranks["a_first_rank_that_fails_keeps_nobody_waiting"]

    assert [failed, later] == of_second
    assert failed["decisions"] == []
    assert len(later["decisions"]) >= 1


def test_no_thread_of_the_group_is_left_that_could_meet_the_end_of_the_interpreter(of_ranks):
    for during, after in of_ranks["the_group_of_an_agreement_ends_with_it"]:
        assert after < during


def test_ranks_that_undo_a_raise_go_back_to_the_same_weights_and_states_bit_for_bit(of_ranks):
    first, second = of_ranks["a_raise_that_fails_is_undone_on_every_rank"]

    assert first == second
    assert first["is_put_back"]
    assert first["undone"] == first["at_raise"]
    assert all(first["later"][name] != value for name, value in first["at_raise"].items())


def test_where_one_rank_cannot_copy_its_weights_all_raise_by_the_root_of_two_and_stay_equal(of_ranks):
    both = of_ranks["a_copy_that_fits_on_one_rank_alone"]
    first, second = both

    assert first["weights"] == second["weights"]
    assert first["found"] == second["found"]
    rates = [rate for _, _, rate in first["found"]["decisions"]]
    assert rates == pytest.approx([2 ** ((k + 1) / 2) for k in range(len(rates))])
    assert len(rates) >= 1
    assert first["found"]["state"]["books"]["memory"]["probation"] is None
    assert [(one["has_copy"], one["faults"]) for one in both] == [(False, 0), (False, 0)]
    reasons = [[said for said in one["said"] if "did not fit" in said] for one in both]
    assert reasons == [["a copy of the weights of rank 1 did not fit: CUDA out of memory."], []]


@pytest.mark.slow
def test_two_ranks_of_a_trainer_change_together(tmp_path):
    script = Path(__file__).with_name("trainer_on_two_ranks.py")
    environment = os.environ | {"PYTHONPATH": with_support(), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]

    done = subprocess.run([*command, script, tmp_path], env=environment, capture_output=True, text=True, timeout=240)

    assert done.returncode == 0, done.stderr[-4000:]
    first, second = (json.loads((tmp_path / f"found-{rank}.json").read_text()) for rank in range(2))
    assert first["decisions"] == second["decisions"]
    assert first["decisions"][-1][1] == pytest.approx(128, rel=0.6)
    assert all(first["sizes"][step] == batch for step, batch in first["decisions"])
    assert sum(first["sizes"]) == 6000
    assert first["faults"] == second["faults"] == 0
