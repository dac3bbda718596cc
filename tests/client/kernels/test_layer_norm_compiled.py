"""The slab kernel compiled ahead of time, which needs no GPU: types, width of loads, registers."""

import re
import subprocess
from pathlib import Path

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from noisescale.kernels.layer_norm_sq_norms import kernel, launch

pytestmark = [pytest.mark.slow, pytest.mark.processes]

FINISH, BY_EXAMPLE, BY_ROW = kernel.FINISH.value, kernel.BY_EXAMPLE.value, kernel.BY_ROW.value

CUOBJDUMP = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"

FLOATS = {"mean", "scale", "along_mean", "inner_mean", "weight_sum", "bias_sum"}

ARCHITECTURES = pytest.mark.parametrize(
    "architecture", [pytest.param(80, id="sm_80", marks=pytest.mark.slow), pytest.param(90, id="sm_90")]
)

# width of a row, its type, who squares, whether grad_input is wanted, registers that a thread may take
SLABS = {
    "gpt2": (768, "bf16", FINISH, True, 128),
    "gpt2, fp32": (768, "fp32", FINISH, True, 128),
    "gpt2, short examples": (768, "bf16", BY_EXAMPLE, True, 128),
    "gpt2, rows are examples": (768, "bf16", BY_ROW, True, 168),
    "observed only": (768, "bf16", FINISH, False, 96),
    "no power of 2": (1000, "fp16", FINISH, True, 128),
    "narrow": (64, "fp32", FINISH, True, 128),
    "wide": (4096, "bf16", FINISH, True, 128),
    "wide, short examples": (4096, "fp32", BY_EXAMPLE, True, 232),
    "widest in registers": (8192, "bf16", FINISH, True, 128),
    "tiles": (8192, "fp32", FINISH, True, 128),
    "tiles, rows are examples": (16384, "bf16", BY_ROW, True, 128),
}


@pytest.fixture(autouse=True)
def no_cache_outside(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def compile_ahead(function, types, constants, architecture, *, num_warps, is_aligned=True):
    pointers = [name for name in function.arg_names if types.get(name, "").startswith("*")]
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in function.arg_names}
    aligned = {(function.arg_names.index(name),): [["tt.divisibility", 16]] for name in pointers}
    source = ASTSource(function, signature, constants, aligned if is_aligned else {})
    options = {"num_warps": num_warps, "enable_fp_fusion": launch.FUSE_MULTIPLY_ADD}
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)


def compile_slabs(width, dtype, squares, has_grad_input, architecture, *, is_aligned=True):
    tile = launch.cut_tile(width, launch.SLAB_ROWS, is_16_bit=dtype != "fp32")
    types = dict.fromkeys(FLOATS, "*fp32") | dict.fromkeys(["activation", "grad_output", "grad_input"], f"*{dtype}")
    types |= {"weight": "*fp32", "weight_sq_norm": "*fp64", "bias_sq_norm": "*fp64", "eps": "fp32"}
    has_tiles = tile.num_tiles > 1
    constants = {
        "NUM_ELEMENTS": width, "BLOCK": tile.block, "ROWS": tile.rows, "IS_CENTRED": True,
        "HAS_GRAD_INPUT": has_grad_input, "HAS_STATISTICS": has_tiles, "HAS_MEANS": has_tiles, "SQUARES": squares,
    }  # fmt: skip
    compiled = compile_ahead(
        kernel.slab_gradients, types, constants, architecture, num_warps=tile.num_warps, is_aligned=is_aligned
    )
    return compiled, tile


def resources(compiled, tmp_path):
    """Registers a thread, and bytes that did not fit into them."""
    file = tmp_path / "kernel.cubin"
    file.write_bytes(compiled.asm["cubin"])
    said = subprocess.run(
        [CUOBJDUMP, "-res-usage", file], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", said)
    return int(found[1]), int(found[2]) + int(found[3])


def loads(compiled):
    return set(re.findall(r"ld\.global[\w.:]*?\.((?:v\d\.)?[bu]\d+)", compiled.asm["ptx"]))


@ARCHITECTURES
@pytest.mark.parametrize("name", SLABS)
def test_slabs_are_read_16_bytes_at_a_time_and_fit_into_registers(name, architecture, tmp_path):
    width, dtype, squares, has_grad_input, most_registers = SLABS[name]

    compiled, tile = compile_slabs(width, dtype, squares, has_grad_input, architecture)
    registers, spilled = resources(compiled, tmp_path)

    of_each_row = {"b32"} if tile.num_tiles > 1 else set()  # its mean and scale, one number a row
    assert loads(compiled) == {"v4.b32"} | of_each_row
    assert spilled == 0
    assert registers <= most_registers
    assert ("atom" in compiled.asm["ptx"], "red.global" in compiled.asm["ptx"]) == (False, False)


@ARCHITECTURES
def test_odd_widths_and_addresses_compile_too(architecture, tmp_path):
    compiled, _ = compile_slabs(1001, "bf16", FINISH, True, architecture, is_aligned=False)

    assert resources(compiled, tmp_path)[1] == 0


@ARCHITECTURES
@pytest.mark.parametrize("function", [kernel.row_means, kernel.example_sq_norms], ids=["row means", "finish"])
def test_the_small_kernels_read_16_bytes_at_a_time_and_fit_into_registers(function, architecture, tmp_path):
    types = dict.fromkeys(FLOATS, "*fp32") | dict.fromkeys(["activation", "grad_output", "weight"], "*bf16")
    types |= {"weight_sq_norm": "*fp64", "bias_sq_norm": "*fp64", "eps": "fp32"}
    constants = {"NUM_ELEMENTS": 16384, "BLOCK": launch.TILE, "IS_CENTRED": True}

    compiled = compile_ahead(function, types, constants, architecture, num_warps=launch.MIN_WARPS)
    registers, spilled = resources(compiled, tmp_path)

    assert loads(compiled) == {"v4.b32"}
    assert spilled == 0
    assert registers <= 80


def test_16_bit_gradients_are_rounded_and_not_cut_off():
    """The interpreter cuts off, so it cannot tell."""
    compiled, _ = compile_slabs(768, "bf16", FINISH, True, 90)

    assert "cvt.rn.bf16" in compiled.asm["ptx"]
