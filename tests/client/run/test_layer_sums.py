"""Layers of many steps: what is sent equals a plain sum over steps, to the last bit, whatever the numbers are."""

import math
import sys
from fractions import Fraction

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from client_runs import make_kept_run
from noisescale.rows.recording import TermSums
from noisescale.rows.row_parts import BELOW, MAX_WAITING, LayerNorms, LayerSums, are_all_below, packed_columns
from noisescale.rows.updates import has_finite_squares
from noisescale_core.estimators.noise_scale import solve_two_batches, solve_unequal_groups, two_batch

SQ_NORMS = st.floats(0, 1e60) | st.sampled_from([0.0, 5e-324, 1e-300, 1e69, 1e71, math.inf, math.nan])
NUMBERS = SQ_NORMS | st.integers(0, 2**60) | st.floats(0, 1e30).map(numpy.float64) | st.just(Fraction(1, 3))
LAYERS = st.dictionaries(st.sampled_from(["embed", "blocks.0", "blocks.1", "head"]), st.tuples(NUMBERS, NUMBERS))
STEPS = st.lists(st.tuples(LAYERS, st.sampled_from([1, 8, 7.5, 64]), st.just(64)), max_size=6)


def log(run, layers, *, small=8, big=64):
    run.log_norms(small_batch_size=small, big_batch_size=big, small_sq_norm=5.0, big_sq_norm=2.0, layers=layers)


def summed_plainly(steps):
    """What `groups` records hold when each step's layers are added one by one."""
    records, names, sums, num_updates = [], [], [], 0

    def end():
        if names and num_updates:
            records.append((names, [num_updates] * len(names), *zip(*(one.moments() for one in sums), strict=True)))

    for layers, small, big in steps:
        if list(layers) != names:
            end()
            names, sums, num_updates = list(layers), [TermSums() for _ in layers], 0
        if small == big:
            continue
        terms = [
            two_batch(
                small_sq_norm=float(of_small), big_sq_norm=float(of_big), small_batch_size=small, big_batch_size=big
            )
            for of_small, of_big in layers.values()
        ]
        if all(map(has_finite_squares, terms)):
            num_updates += 1
            for one, added in zip(sums, terms, strict=True):
                one.add(added)
    end()
    return records


def sent(kept):
    return [
        (
            record.names,
            record.num_updates,
            *map(
                tuple,
                (
                    record.sum_trace_cov,
                    record.sum_grad_sq_norm,
                    record.sum_trace_cov_sq,
                    record.sum_grad_sq_norm_sq,
                    record.sum_trace_cov_grad_sq_norm,
                ),
            ),
        )
        for record in kept.groups()
    ]


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_layers_are_sent_as_their_plain_sums_whatever_numbers_they_are(steps):
    run, kept = make_kept_run(group_seconds=1e9)

    for layers, small, big in steps:
        log(run, layers, small=small, big=big)
    run.finish()

    assert sent(kept) == summed_plainly(steps)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda num_layers: st.lists(
            st.tuples(
                st.lists(st.floats(0, 1e60), min_size=2 * num_layers, max_size=2 * num_layers),
                st.sampled_from([(8.0, 64.0), (2, 8.0), (3, 1e-3)]),
                st.booleans(),
            ),
            max_size=3 * MAX_WAITING,
        )
    )
)
def test_numpy_and_plain_python_give_the_same_sums(steps):
    def summed():
        sums = LayerSums(len(steps[0][0]) // 2) if steps else LayerSums(1)
        for norms, sizes, is_pair in steps:
            half = len(norms) // 2
            terms_of = solve_two_batches if is_pair else solve_unequal_groups
            sums.add(LayerNorms(terms_of, norms[:half], norms[half:], sizes))
        return sums.num_updates, sums.moments()

    with_numpy = summed()
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "numpy")
        without = summed()

    assert repr(with_numpy) == repr(without)  # with the sign of zero, and NaN where it is


def test_programs_that_have_numpy_raise_on_underflow_are_not_disturbed():
    run, kept = make_kept_run()

    with numpy.errstate(all="raise"):
        for _ in range(2 * MAX_WAITING):
            log(run, {"head": (1e-200, 1e-201)})
        run.finish()

    assert kept.groups()[0].sum_trace_cov_sq == [0.0]


@pytest.mark.parametrize("value", [torch.tensor(2.0), torch.tensor(2.0, requires_grad=True), "2.0", numpy.float32(2)])
def test_layers_of_tensors_and_other_numbers_are_read_at_once(value):
    run, kept = make_kept_run()

    log(run, {"head": (3.0, value), "embed": (value, 1)})
    if isinstance(value, torch.Tensor):
        value.data.fill_(7.0)
    run.finish()

    assert sent(kept) == summed_plainly([({"head": (3.0, 2.0), "embed": (2.0, 1.0)}, 8, 64)])


@pytest.mark.parametrize("layers", [{"head": (1.0, 1.0, 1.0)}, {"head": (1.0,), "embed": (1.0,)}, {"head": ("x", 1.0)}])
def test_a_layer_without_two_numbers_is_a_fault_and_leaves_the_step_out(layers):
    run, kept = make_kept_run(strict=False)

    log(run, layers)

    assert (run.faults.count, kept.records) == (1, [])


def test_a_negative_norm_of_a_layer_is_named():
    run, _ = make_kept_run()

    with pytest.raises(ValueError, match=r"must not be negative, got -1 and 1"):
        log(run, {"embed": (2.0, 1.0), "head": (-1.0, 1.0)})


@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_the_top_byte_of_each_number_tells_whether_all_are_from_0_to_below_a_limit(numbers):
    is_so = all(0 <= number < BELOW and math.copysign(1, number) > 0 for number in numbers)

    assert are_all_below(packed_columns(numbers, [])) == is_so


@pytest.mark.parametrize("number", [BELOW, -0.0, -5e-324, math.nan, math.inf, -math.inf])
def test_a_number_beyond_the_limit_is_seen_among_others(number):
    assert are_all_below(packed_columns([0.0, math.nextafter(BELOW, 0)], [5e-324]))
    assert not are_all_below(packed_columns([1.0] * 150, [*[1.0] * 149, number]))
