"""Which small bugs are planted: some of cosmic-ray's operators, and three of our own.

Of cosmic-ray's operators those are left out whose mutants are nearly always the same program (`is` for `==`) or no
program at all (`%` for `+`). The SQL of this project is text, which no tool mutates.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import parso
from cosmic_ray.operators.number_replacer import NumberReplacer
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator

Position = tuple[tuple[int, int], tuple[int, int]]

_COMPARISONS: Final = (
    *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
    *("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
)
_ARITHMETIC: Final = (
    *("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul"),
    *("LShift_RShift", "RShift_LShift", "BitOr_BitAnd", "BitAnd_BitOr"),
)
OF_COSMIC_RAY: Final = (
    *(f"ReplaceComparisonOperator_{pair}" for pair in _COMPARISONS),
    *(f"ReplaceBinaryOperator_{pair}" for pair in _ARITHMETIC),
    *("ReplaceUnaryOperator_USub_UAdd", "ReplaceUnaryOperator_Delete_Not"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "AddNot"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
)

SMALL: Final = 16
"""One more or less than a larger number is hardly another program: they are doubled."""


class Number(NumberReplacer):  # type: ignore[misc]
    """One more and one less, and twice as much of a large number."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """Two of a small number, one of a large one."""
        for index, position in enumerate(super().mutation_positions(node)):
            if index == 0 or _is_small(node):
                yield position

    def mutate(self, node: Any, index: int) -> Any:
        """The other number."""
        if _is_small(node):
            return super().mutate(node, index)
        doubled = 2 * _value(node) or 1.0
        return parso.python.tree.Number(f"{node.prefix}{doubled}", node.start_pos)


def _value(node: Any) -> int | float:
    text = node.value.replace("_", "")
    return int(text, 0) if re.fullmatch(r"0[xob]\w+|\d+", text) else float(text)


def _is_small(node: Any) -> bool:
    value = _value(node)
    return isinstance(value, int) and value <= SMALL


class LeftOutStatement(Operator):  # type: ignore[misc]
    """A call whose value nobody takes, or a `raise`, that is not there; what is said in a log is left alone."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """At most one."""
        if node.type == "simple_stmt" and node.children[0].type in ("atom_expr", "raise_stmt", "keyword"):
            statement = node.children[0].get_code(include_prefix=False)
            if not statement.startswith("logger.") and statement not in ("pass", "break", "continue"):
                yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The statement `pass`."""
        old = node.children[0]
        node.children[0] = parso.python.tree.Keyword("pass", old.start_pos, old.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """None: the tests of the benchmark have them."""
        return ()


IN_SQL: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\bleast\b", "greatest"),
        (r"\bgreatest\b", "least"),
        (r"\bmin\b(?=\(|$)", "max"),
        (r"\bmax\b(?=\(|$)", "min"),
        (r"\bbit_or\b", "bit_and"),
        (r" \| ", " & "),
        (r">=", ">"),
        (r"<=", "<"),
        (r" > ", " >= "),
        (r" < ", " <= "),
        (r" \+ ", " - "),
        (r" \* (?!FROM)", " + "),
        (r" / ", " * "),
        (r"<<", ">>"),
        (r">>", "<<"),
        (r"\bcoalesce\(([^,()]+), [^()]+\)", r"\1"),
        (r"\bIS NULL\b", "IS NOT NULL"),
        (r"\bIS NOT NULL\b", "IS NULL"),
        (r"\bNOT EXISTS\b", "EXISTS"),
        (r"\btrue\b", "false"),
        (r" FOR UPDATE OF \w+", ""),
        (r"\bDISTINCT ", ""),
        (r"\bTHEN (\S+) ELSE (\S+)", r"THEN \2 ELSE \1"),
        (r"\bTHEN ([\w.]*\{[^}]+\}) ELSE ([\w.]*\{[^}]+\})", r"THEN \2 ELSE \1"),
        (r"\bAND (?=[\w.]+ (=|<|>|IS)|NOT|\()", "OR "),
        (r"(?<= )= (?=ANY|\$\d|[a-z]+\.\w+( |\)|$))", "<> "),
        (r"(?<=ORDER BY )([^\n(){]+)$", r"\1 DESC"),
    )
)
"""What is replaced in the text of a statement."""

NUMBER_IN_SQL: Final = re.compile(r"(?<![\w$.{\]])\d+(?![\w.}])")


class InSql(Operator):  # type: ignore[misc]
    """Another function, comparison, number or order in a text of SQL."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        """One for each replacement."""
        for _ in _mutants_of_text(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The same text, but for one replacement."""
        node.value = list(_mutants_of_text(node))[index]
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """None: the tests of the benchmark have them."""
        return ()


def _mutants_of_text(node: Any) -> Iterator[str]:
    if node.type not in ("string", "fstring_string") or node.parent.type == "simple_stmt":
        return
    text: str = node.value
    for pattern, replacement in IN_SQL:
        for found in pattern.finditer(text):
            yield text[: found.start()] + found.expand(replacement) + text[found.end() :]
    for found in NUMBER_IN_SQL.finditer(text):
        yield text[: found.start()] + str(int(found.group()) + 1) + text[found.end() :]


def operators_for(path: str) -> dict[str, Operator]:
    """The operators for a file, by name.

    Args:
        path: Of the file: texts are SQL in the server's storage alone.
    """
    found: dict[str, Operator] = {name: get_operator(f"core/{name}")() for name in OF_COSMIC_RAY}
    found |= {"Number": Number(), "LeftOutStatement": LeftOutStatement()}
    return found | ({"InSql": InSql()} if "/storage/" in path else {})
