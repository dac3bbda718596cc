"""All mutants of some files, and a number of them drawn at random."""

import ast
import difflib
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from mutation.operators import operators_for

AT_ONE_MOMENT = {f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")}
CLOCK = re.compile(r"\bnow\b|\btime\(\)|\bmonotonic\(\)|\bwaited\b")
"""Of a comparison with a clock the one moment that these change never comes, but on a clock that a test sets."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small bug.

    Attributes:
        file: Relative to the checkout.
        line: Where it is.
        operator: What was done.
        occurrence: Of the operator in the file.
    """

    file: str
    line: int
    operator: str
    occurrence: int

    def code(self, original: str) -> str:
        """The whole file with the bug."""
        mutated: str = mutate_code(original, operators_for(self.file)[self.operator], self.occurrence)
        return mutated

    def difference(self, original: str) -> tuple[str, str]:
        """The changed lines, before and after."""
        lines = list(difflib.ndiff(original.splitlines(), self.code(original).splitlines()))
        before, after = ([line[2:].strip() for line in lines if line.startswith(sign)] for sign in "-+")
        return " ".join(before), " ".join(after)


def mutants_of(root: Path, file: str) -> Iterator[Mutant]:
    """All of a file that could behave in another way.

    Args:
        root: The checkout.
        file: Relative to it.
    """
    code = (root / file).read_text()
    nodes = list(ast_nodes(get_ast(code)))
    silent = _Silent(code)
    for name, operator in operators_for(file).items():
        occurrence = 0
        for node in nodes:
            is_of_a_signature = node.type == "operator" and node.parent.type == "parameters"
            is_one_moment = name in AT_ONE_MOMENT and bool(CLOCK.search(node.get_code()))
            for start, _ in operator.mutation_positions(node):
                # whatever is left out counts all the same, as it does where the mutant is planted
                if start not in silent and not is_of_a_signature and not is_one_moment:
                    yield Mutant(file, start[0], name, occurrence)
                occurrence += 1


def drawn(mutants: Iterable[Mutant], seed: int) -> Sequence[Mutant]:
    """All of them in random order: the first hundred are a draw of a hundred."""
    found = list(mutants)
    random.Random(seed).shuffle(found)
    return found


class _Silent:
    """Where code says nothing of what it does: annotations, decorators, and that what is zipped has one length."""

    def __init__(self, code: str) -> None:
        self._ranges: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self._lines = code.splitlines()
        for node in ast.walk(ast.parse(code)):
            for part in _silent_parts(node):
                self._ranges.append((self._place(part.lineno, part.col_offset), self._end(part)))

    def __contains__(self, place: tuple[int, int]) -> bool:
        return any(start <= place < end for start, end in self._ranges)

    def _place(self, line: int, offset: int) -> tuple[int, int]:
        return line, len(self._lines[line - 1].encode()[:offset].decode())

    def _end(self, part: ast.expr | ast.stmt) -> tuple[int, int]:
        assert part.end_lineno is not None
        assert part.end_col_offset is not None
        return self._place(part.end_lineno, part.end_col_offset)


def _silent_parts(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield node.annotation
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from [*node.decorator_list, *([] if node.returns is None else [node.returns])]
    if isinstance(node, ast.ClassDef):
        yield from node.decorator_list
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "zip":
        yield from (keyword.value for keyword in node.keywords if keyword.arg == "strict")
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        yield node
