"""Symbols that record what is done to them: run a recursion on them and get its arithmetic without loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Tape:
    """Every different operation once: equal operations on equal operands are the same node."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[object, ...], Node] = {}

    def node(self, operation: str, *operands: object) -> Node:
        """Return the node of an operation on operands."""
        key = (operation, *(o.number if isinstance(o, Node) else ("constant", o) for o in operands))
        if key not in self._nodes:
            self._nodes[key] = Node(self, len(self._nodes), operation, operands)
        return self._nodes[key]

    def symbol(self, name: str) -> Node:
        """Return the node of an input."""
        return self.node("symbol", name)

    def constant(self, value: float) -> Node:
        """Return the node of a number."""
        return self.node("constant", float(value))


class Node:
    """One value of a traced computation; adds, multiplies and divides like a number."""

    __slots__ = ("tape", "number", "operation", "operands")

    def __init__(self, tape: Tape, number: int, operation: str, operands: tuple[object, ...]) -> None:
        self.tape, self.number, self.operation, self.operands = tape, number, operation, operands

    @property
    def value(self) -> float | None:
        """The number of a constant, else None."""
        return self.operands[0] if self.operation == "constant" else None  # type: ignore[return-value]

    def _lift(self, other: object) -> Node:
        return other if isinstance(other, Node) else self.tape.constant(float(other))  # type: ignore[arg-type]

    def __neg__(self) -> Node:
        if self.value is not None:
            return self.tape.constant(-self.value)
        if self.operation == "neg":
            return self.operands[0]  # type: ignore[return-value]
        if self.operation == "sub":
            return self.tape.node("sub", self.operands[1], self.operands[0])
        return self.tape.node("neg", self)

    def __add__(self, other: object) -> Node:
        a, b = self, self._lift(other)
        if a.value is not None and b.value is not None:
            return self.tape.constant(a.value + b.value)
        if a.value == 0.0:
            return b
        if b.value == 0.0:
            return a
        if b.operation == "neg":
            return a - b.operands[0]  # type: ignore[operator]
        if a.operation == "neg":
            return b - a.operands[0]  # type: ignore[operator]
        return self.tape.node("add", *sorted((a, b), key=lambda node: node.number))

    __radd__ = __add__

    def __sub__(self, other: object) -> Node:
        a, b = self, self._lift(other)
        if a.value is not None and b.value is not None:
            return self.tape.constant(a.value - b.value)
        if b.value == 0.0:
            return a
        if a.value == 0.0:
            return -b
        if a is b:
            return self.tape.constant(0.0)
        if b.operation == "neg":
            return a + b.operands[0]
        if a.operation == "neg":
            return -(a.operands[0] + b)  # type: ignore[operator]
        return self.tape.node("sub", a, b)

    def __rsub__(self, other: object) -> Node:
        return self._lift(other) - self

    def __mul__(self, other: object) -> Node:
        a, b = self, self._lift(other)
        if a.value is not None and b.value is not None:
            return self.tape.constant(a.value * b.value)
        for one, two in ((a, b), (b, a)):
            if one.value == 0.0:
                return one
            if one.value == 1.0:
                return two
            if one.value == -1.0:
                return -two
            if one.operation == "neg":
                return -(one.operands[0] * two)  # type: ignore[operator]
        if b.value is not None:
            a, b = b, a
        if a.value is not None and a.value < 0.0:
            return -(b * -a.value)
        return self.tape.node("mul", *sorted((a, b), key=lambda node: node.number))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Node:
        b = self._lift(other)
        if self.value == 0.0 or b.value == 1.0:
            return self
        return self.tape.node("div", self, b)

    def __rtruediv__(self, other: object) -> Node:
        return self._lift(other) / self


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_BINDING = {"add": 1, "sub": 1, "neg": 2, "mul": 2, "div": 2}  # how tightly Python reads an operation


class Writer:
    """Writes nodes as assignments; values used more than once get a name, the others stand where they are used."""

    def __init__(self, outputs: Iterable[Node], longest: int = 100) -> None:
        self.longest = longest
        self.lines: list[str] = []
        self._texts: dict[Node, tuple[str, int]] = {}
        self._uses: Counter[Node] = Counter()
        seen: set[Node] = set()
        waiting = list(outputs)
        self._uses.update(waiting)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            operands = [operand for operand in node.operands if isinstance(operand, Node)]
            self._uses.update(operands)
            waiting += operands
        self.operations = sum(1 for node in seen if node.operation in _BINDING)

    def text(self, node: Node) -> str:
        """Return an expression for a node, after writing the assignments it needs."""
        return self._text(node)[0]

    def _text(self, node: Node) -> tuple[str, int]:
        if node in self._texts:
            return self._texts[node]
        if node.operation == "symbol":
            text = (str(node.operands[0]), 9)
        elif node.operation == "constant":
            text = (repr(node.value), 9 if node.value >= 0.0 else 2)  # type: ignore[operator]
        else:
            text = self._compose(node)
            if self._uses[node] > 1 or len(text[0]) > self.longest:
                name = f"x{node.number}"
                self.lines.append(f"{name} = {text[0]}")
                text = (name, 9)
        self._texts[node] = text
        return text

    def _compose(self, node: Node) -> tuple[str, int]:
        parts = [self._text(operand) for operand in node.operands]  # type: ignore[arg-type]
        binding = _BINDING[node.operation]
        if node.operation == "neg":
            text, inner = parts[0]
            return (f"-{text}" if inner > 2 else f"-({text})"), 2
        left, right = parts
        first = left[0] if left[1] >= binding else f"({left[0]})"
        second = right[0] if right[1] > binding or (node.operation == "add" and right[1] == 1) else f"({right[0]})"
        return f"{first} {_SIGNS[node.operation]} {second}", binding
