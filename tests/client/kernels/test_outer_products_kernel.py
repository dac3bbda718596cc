"""The kernel that squares sums of outer products, in Triton's interpreter and on a GPU, against fp64."""

import re
import subprocess
from pathlib import Path

import pytest
import torch

from client.kernels.outer_products_cases import CASES, check, make_rows
from noisescale.capture.per_example import outer_products
from noisescale.kernels.outer_sq_norms import choice, launch

MOST_ERROR = 1e-6

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.processes
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_squares_what_each_example_sums_up(name, interpreted):
    assert interpreted[name]["error"] <= MOST_ERROR
    assert interpreted[name]["is repeatable"]


@pytest.mark.gpu
@on_a_gpu
@pytest.mark.parametrize("name", CASES)
def test_the_compiled_kernel_squares_what_each_example_sums_up(name):
    found = check(name, "cuda")

    assert found["error"] <= MOST_ERROR
    assert found["is repeatable"]


@pytest.mark.gpu
@on_a_gpu
def test_a_backward_takes_its_norms_from_the_compiled_kernel():
    g, a = make_rows(CASES["several large tiles"], "cuda")

    found = outer_products._sq_norms(g, a)

    assert choice._works_on[g.device]
    torch.testing.assert_close(found, outer_products.directly(g.float(), a.float()), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    ("kernels", "dtypes", "is_taken"),
    [
        ("auto", (torch.bfloat16, torch.bfloat16), False),
        ("torch", (torch.bfloat16, torch.bfloat16), False),
        ("triton", (torch.bfloat16, torch.bfloat16), True),
        ("triton", (torch.float16, torch.float16), True),
        ("triton", (torch.float32, torch.float32), False),
        ("triton", (torch.bfloat16, torch.float32), False),
    ],
)
def test_only_numbers_of_16_bit_where_a_kernel_is_wanted_and_works_are_its(kernels, dtypes, is_taken, monkeypatch):
    monkeypatch.setattr(choice, "_works_on", {torch.device("cpu"): True})
    g, a = (torch.zeros(2, 300, 64, dtype=dtype) for dtype in dtypes)

    assert choice.takes_triton(kernels, g, a) == is_taken


def test_a_kernel_that_gives_something_else_is_not_used_and_that_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(choice, "_works_on", {})
    monkeypatch.setattr(choice.outer_sq_norms, "fused_outer_sq_norms", lambda g, a: torch.ones(len(g)).double())
    choice._warn_once.cache_clear()
    g = torch.zeros(2, 300, 64, dtype=torch.bfloat16)

    assert not choice.takes_triton("triton", g, g)
    assert not choice.takes_triton("triton", g, g)
    assert caplog.text.count("outer products does not work on cpu") == 1


def test_an_example_needs_no_memory_for_its_product_where_the_kernel_makes_it(monkeypatch):
    monkeypatch.setattr(outer_products, "takes_triton", lambda *_: True)
    asked = []

    def fused(g, a):
        asked.append(len(g))
        return outer_products.directly(g.float(), a.float())

    monkeypatch.setattr(outer_products.outer_sq_norms_kernel, "fused_outer_sq_norms", fused)
    g, a = torch.randn(40, 900, 256).bfloat16(), torch.randn(40, 900, 512).bfloat16()
    rows = lambda start, stop: (g[start:stop], a[start:stop])  # noqa: E731

    found = outer_products.outer_sq_norms(
        [outer_products.OuterProducts(40, 900, 1, 256, 512, True, rows)], None, torch.device("cpu")
    )

    assert asked == [40]
    torch.testing.assert_close(found, outer_products.directly(g.float(), a.float()))


def test_positions_that_lie_too_far_apart_for_32_bits_are_put_together():
    far = torch.empty(1024, 900, 50_257, dtype=torch.bfloat16, device="meta")
    positions_first = far.as_strided(far.shape, (50_257, 1024 * 50_257, 1))

    assert launch._side_by_side(far) is far
    assert launch._side_by_side(positions_first).stride() == far.stride()


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("tile", [launch.LARGE, launch.SMALL], ids=["large", "small"])
@pytest.mark.parametrize("is_even", [True, False], ids=["even", "with edges"])
def test_compiled_for_hopper_it_uses_the_tensor_cores_and_spills_nothing(tile, is_even, tmp_path, monkeypatch):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from noisescale.kernels.outer_sq_norms import kernel

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    function = kernel.tile_sq_norms
    constants = {
        "BLOCK_O": tile.outputs, "BLOCK_I": tile.inputs, "BLOCK_T": tile.positions, "IS_EVEN": is_even, "UPCAST": False,
    }  # fmt: skip
    types = {"grad_output": "*bf16", "activation": "*bf16", "sq_norm": "*fp64"}
    signature = {name: "constexpr" if name in constants else types.get(name, "i32") for name in function.arg_names}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(10)}
    options = {"num_warps": tile.num_warps, "num_stages": tile.num_stages, "enable_fp_fusion": True}

    compiled = triton.compile(
        ASTSource(function, signature, constants, aligned), target=GPUTarget("cuda", 90, 32), options=options
    )

    file = tmp_path / "kernel.cubin"
    file.write_bytes(compiled.asm["cubin"])
    dump = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    said = subprocess.run([dump, "-res-usage", file], capture_output=True, text=True, check=True, timeout=60).stdout
    assert re.search(r"STACK:0 .*LOCAL:0", said)
    assert "wgmma" in compiled.asm["ptx"]
