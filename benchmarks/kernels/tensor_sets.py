"""Shapes of the parameters that gradients are summed up over: two real models, many tiny tensors, one huge one."""

import math
from dataclasses import dataclass

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorSet:
    """Tensors of one list.

    Attributes:
        name: As results call it.
        shapes: Of each tensor.
        needs_gpu: Too large to be measured on a CPU in a minute.
        targets_many: Whether host time decides: many launches, few bytes.
    """

    name: str
    shapes: tuple[Shape, ...]
    needs_gpu: bool = False
    targets_many: bool = False

    @property
    def num_elements(self) -> int:
        """Of all tensors together."""
        return sum(math.prod(shape) for shape in self.shapes)


def gpt2_124m() -> TensorSet:
    """GPT-2 small with its tied head (Radford et al. 2019): 148 tensors, 124,439,808 elements."""
    width = 768
    block: list[Shape] = [(width,), (width,), (width, 3 * width), (3 * width,), (width, width), (width,)]
    block += [(width,), (width,), (width, 4 * width), (4 * width,), (4 * width, width), (width,)]
    return TensorSet("gpt2-124M", ((50257, width), (1024, width), *(block * 12), (width,), (width,)))


def llama_1b() -> TensorSet:
    """Llama 3.2 1B with its tied head (Grattafiori et al. 2024, and the model's card): 146 tensors, 1.24e9 elements."""
    width, hidden, keys = 2048, 8192, 512
    attention: list[Shape] = [(width, width), (keys, width), (keys, width), (width, width)]
    block = [*attention, (hidden, width), (hidden, width), (width, hidden), (width,), (width,)]
    return TensorSet("llama-1B", ((128256, width), *(block * 16), (width,)), needs_gpu=True)


def tiny_2000() -> TensorSet:
    """2000 tensors of 64 to 3072 elements, a third of them of odd sizes."""
    sizes = [64, 257, 768, 1001, 3072, 512]
    return TensorSet("tiny-2000", tuple((sizes[i % len(sizes)],) for i in range(2000)), targets_many=True)


def huge() -> TensorSet:
    """One tensor of more elements than 32 bits count."""
    return TensorSet("one-5e9", ((5_000_000_000,),), needs_gpu=True)


def all_sets() -> tuple[TensorSet, ...]:
    """In the order of results."""
    return gpt2_124m(), tiny_2000(), llama_1b(), huge()
