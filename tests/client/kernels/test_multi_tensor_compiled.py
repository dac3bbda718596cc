"""The kernels compiled ahead of time, which needs no GPU: types, width of loads and stores, registers, spills."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from noisescale.kernels.multi_tensor import kernel, launch, tuned
from noisescale.kernels.operations import Operation

pytestmark = [pytest.mark.slow, pytest.mark.processes]

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"

F32, BF16, F16, F64 = torch.float32, torch.bfloat16, torch.float16, torch.float64

HOPPER = 90

ARCHITECTURES = pytest.mark.parametrize(
    "architecture", [pytest.param(80, id="sm_80", marks=pytest.mark.slow), pytest.param(90, id="sm_90")]
)

# types of x and y, registers that a thread may take: 64 leave room for half of all threads, 80 for three eighths, 104
# for a quarter: three lists are read at looks alone
VARIANTS = [
    (Operation.SQ_NORMS, F32, F32, 64),
    (Operation.SQ_NORMS, BF16, BF16, 64),
    (Operation.SQ_NORMS, F16, F16, 64),
    (Operation.DOTS, F32, F32, 80),
    (Operation.DOTS, BF16, F32, 80),
    (Operation.ACCUMULATE, F32, F32, 64),
    (Operation.ACCUMULATE, BF16, F32, 64),
    (Operation.ACCUMULATE, F16, F32, 64),
    (Operation.PRECONDITIONED, F32, F32, 80),
    (Operation.PRECONDITIONED, BF16, F32, 80),
    (Operation.SIGNS, F32, F32, 80),
    (Operation.SIGNS, BF16, BF16, 80),
    (Operation.METRIC, F32, F32, 104),
    (Operation.METRIC, BF16, F32, 104),
]


@pytest.fixture(scope="module", autouse=True)
def no_cache_outside(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        yield


def types_of(scale):
    return {
        "table": "*i64", "first_numbers": "*fp64", "second_numbers": "*fp64", "chunk_tensor": "*i32",
        "chunk_slot": "*i32", "chunk_offset": "*i64", "inverse_scale": "*fp32" if scale else "*i64",
        "partials": "*fp64", "num_tensors": "i32", "num_chunks": "i32", "first_chunk": "i32",
    }  # fmt: skip


def compile_chunks(operation, first, other, architecture, *, has_scale=False, is_aligned=True):
    variant = launch.variant_of(
        divmod(architecture, 10), operation, first, other, has_scale=has_scale, is_aligned=is_aligned
    )
    signature = types_of(has_scale) | dict.fromkeys(variant.constants, "constexpr")
    source = ASTSource(kernel.reduce_chunks, signature, variant.constants)
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=variant.options)


def accesses(compiled, instruction):
    """How often memory is accessed in which width, by the compiler's text."""
    found = re.findall(rf"{instruction}\.global(?:\.[a-z_:]+\w*)*?((?:\.v\d)?\.b\d+)", compiled.asm["ptx"])
    return Counter(found)


def resources(compiled, tmp_path):
    binary = tmp_path / "kernel.cubin"
    binary.write_bytes(compiled.asm["cubin"])
    command = [str(CUOBJDUMP), "-res-usage", str(binary)]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return {name: int(value) for name, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", printed)}


def vectors(setting, dtype):
    """16-byte accesses a thread makes to read a whole block."""
    return setting.block // (32 * setting.num_warps) * dtype.itemsize // 16


@ARCHITECTURES
@pytest.mark.parametrize(("operation", "first", "other", "most"), VARIANTS)
def test_whole_blocks_are_read_16_bytes_at_a_time_without_spills(operation, first, other, most, architecture, tmp_path):
    compiled = compile_chunks(operation, first, other, architecture)

    used = resources(compiled, tmp_path)
    setting = tuned.setting_of(divmod(architecture, 10), operation, first.itemsize)
    wide = vectors(setting, first) + vectors(setting, other) * (operation.has_other + operation.has_third)
    assert accesses(compiled, "ld")[".v4.b32"] >= wide
    if operation is Operation.ACCUMULATE:
        assert accesses(compiled, "st")[".v4.b32"] >= vectors(setting, other)
    assert used["STACK"] == used["LOCAL"] == 0
    assert used["REG"] <= most


@pytest.mark.parametrize("operation", Operation)
def test_odd_addresses_are_read_one_element_at_a_time(operation, tmp_path):
    """A wider load of an odd address is an error of the device."""
    compiled = compile_chunks(operation, BF16, F32, HOPPER, is_aligned=False)

    assert not [width for width in accesses(compiled, "ld") + accesses(compiled, "st") if ".v" in width]
    assert resources(compiled, tmp_path)["LOCAL"] == 0


@pytest.mark.parametrize("operation", Operation)
def test_fp64_and_scaled_lists_compile_without_spills(operation, tmp_path):
    for first, other in ((F64, F64), (F16, F16)):
        used = resources(compile_chunks(operation, first, other, HOPPER, has_scale=True), tmp_path)

        assert used["STACK"] == used["LOCAL"] == 0


@ARCHITECTURES
def test_the_kernel_that_finishes_compiles_without_spills(architecture, tmp_path):
    types = {
        "partials": "*fp64", "segment_low": "*i32", "segment_high": "*i32", "sums": "*fp64",
        "num_chunks": "i32", "num_segments": "i32", "BLOCK": "constexpr",
    }  # fmt: skip
    source = ASTSource(kernel.sum_segments, types, {"BLOCK": launch.SEGMENT_BLOCK})

    compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=launch.SEGMENT_OPTIONS)

    used = resources(compiled, tmp_path)
    assert used["STACK"] == used["LOCAL"] == 0
    assert used["REG"] <= 64
