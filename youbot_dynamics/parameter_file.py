"""ROS parameter files, read strictly: refused is what rcl refuses, or reads differently than PyYAML does."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import yaml

from youbot_dynamics.errors import ParameterError, printable
from youbot_dynamics.files import read_text, write_atomically
from youbot_dynamics.parameters import Parameter, Value, check_names

_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+][0-9]+)?")
# Texts that one of the two parsers takes for a number, a truth value, a date or nothing.
_AMBIGUOUS = re.compile(
    r"(?i)[-+]?[0-9][0-9_.:,xob]*([e][-+]?[0-9]+)?|[-+]?\.(inf|nan)|[-+]?(inf|nan|infinity)"
    r"|[-+]?0x[0-9a-f.]*(p[-+]?[0-9]+)?|y|n|yes|no|on|off|true|false|null|~|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*"
)
# Texts no C string or UTF-8 file can hold: NUL, half of a surrogate pair.
_UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
# A node pattern: names and wildcards, each a whole part of the path.
_SECTION = re.compile(r"/?([A-Za-z_][A-Za-z0-9_]{0,254}|\*\*?)(/([A-Za-z_][A-Za-z0-9_]{0,254}|\*\*?))*")
_COMMENT = re.compile(r"[ \t]+#([^\r\n\0]*)")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")

LARGEST = 1_000_000  # [bytes] of a parameter file
_DEEPEST = 32  # lists and mappings inside each other


class Placed(NamedTuple):
    """A value, the line of the file it stands in, counted from 1, and the comment behind it, "" for none."""

    value: Value
    line: int = 0
    comment: str = ""


Sections: TypeAlias = Mapping[str, Mapping[str, Placed]]  # node pattern -> dotted names and values


def read_parameters(path: Path, node: str, namespace: str = "") -> dict[str, Value]:
    """Parameters that a ROS parameter file gives to one node.

    Sections `/**`, `/**/NODE` and the node's full name apply, in the order of the file; later ones win.

    Args:
        path: the file.
        node: node name without namespace; "" takes the `/**` sections alone.
        namespace: namespace of the node, without slashes at its ends.

    Returns:
        Dotted names and values; lists become tuples.

    Raises:
        ParameterError: the file is missing or not what rcl accepts; names the file, line and key.
    """
    return {name: placed.value for name, placed in _read_placed(path, node, namespace).items()}


def read_checked(path: Path, prefix: str, table: Mapping[str, Parameter]) -> dict[str, Value]:
    """Parameters below one prefix that the `/**` sections of a ROS parameter file give, each as its table wants it.

    Args:
        path: the file.
        prefix: first part of the names that are wanted; others may be in the file for the nodes.
        table: every parameter there is below the prefix, by its dotted name.

    Raises:
        ParameterError: as `read_parameters`; a name outside the table, or a value that its parameter refuses. Names
            the file, line and parameter.
    """
    checked: dict[str, Value] = {}
    for name, (value, line, _) in _read_placed(path, "", "").items():
        if name.split(".")[0] != prefix:
            continue
        try:
            check_names([name], table)
            checked[name] = table[name].check(value)
        except ParameterError as refused:
            place = f"parameter file {path}, line {line}: {refused.thing}"
            raise ParameterError(place, got=refused.got, expected=refused.expected, remedy=refused.remedy) from None
    return checked


def _read_placed(path: Path, node: str, namespace: str) -> dict[str, Placed]:
    full_name = "".join(f"/{part}" for part in (namespace.strip("/"), node) if part)
    values: dict[str, Placed] = {}
    for section, parameters in read_sections(path).items():
        if _section_applies(section, full_name):
            values.update(parameters)
    return values


def _section_applies(section: str, full_name: str) -> bool:
    wildcards = {"*": r"/\w+", "**": r"(/\w+)*"}
    parts = section.lstrip("/").split("/")
    # A `**` behind another one matches nothing more, and multiplies the ways to try.
    parts = [part for part, before in zip(parts, ["", *parts], strict=False) if not part == before == "**"]
    pattern = "".join(wildcards.get(part, "/" + re.escape(part)) for part in parts)
    return re.fullmatch(pattern, full_name) is not None


def read_sections(path: Path, limit: int = LARGEST) -> Sections:
    """Every section of a parameter file of at most `limit` bytes, before `scaled`; raises as `read_parameters`.

    Node pattern -> dotted names, values, lines and comments.
    """
    return _sections(read_text(path, ParameterError, f"parameter file {path}", "a ROS parameter file", limit), path)


def other_sections(paths: Sequence[Path], prefix: str) -> Sections:
    """What some parameter files say beside the facts below a prefix, which stand in `/**` sections; later ones win.

    Raises:
        ParameterError: as `read_parameters`.
    """
    others: dict[str, dict[str, Placed]] = {}
    for path in paths:
        for section, placed in read_sections(path).items():
            kept = placed
            if _section_applies(section, ""):
                kept = {name: one for name, one in placed.items() if name.split(".")[0] != prefix}
            if kept:
                others.setdefault(f"/{section.lstrip('/')}", {}).update(kept)
    return others


@lru_cache(maxsize=8)  # a robot reads the packaged defaults three times, 30 ms each
def _sections(text: str, path: Path) -> Sections:
    try:
        root = _Composer(text, path).get_single_node()
    except yaml.YAMLError as problem:
        raise ParameterError(f"parameter file {path}", got=" ".join(str(problem).split())) from None
    if root is None:
        return {}
    sections: dict[str, dict[str, Placed]] = {}
    for section, body in _entries(root, path, "the file"):
        entries = _entries(body, path, section)
        alone = len(entries) == 1
        for key, content in entries:
            if key == "ros__parameters" and alone:
                name, parameters = section, content
            else:
                nested = _entries(content, path, key)
                if [name for name, _ in nested] != ["ros__parameters"]:
                    raise _refuse(path, content, f"'{key}' in section {section}", "ros__parameters alone")
                name, parameters = f"{section}/{key}", nested[0][1]
            if not _SECTION.fullmatch(name):
                raise _refuse(path, body, f"section {name}", "NAMESPACE/NODE, with * or ** as whole parts")
            _collect(parameters, path, "", sections.setdefault(name, {}))
    return sections


class _Composer(yaml.SafeLoader):
    """Refuses what composing hides: aliases, explicit tags, other versions of YAML, and what is nested too deeply."""

    def __init__(self, text: str, path: Path) -> None:
        super().__init__(text)
        self._text, self._path = text, path
        self._inside: list[bool] = []  # of each open list or mapping: written with brackets

    def get_event(self) -> yaml.Event:
        event: yaml.Event = super().get_event()  # type: ignore[no-untyped-call]
        got = ""
        if isinstance(event, yaml.AliasEvent):
            got = "a YAML alias"
        elif getattr(event, "tag", None) is not None:
            got = "a YAML tag"
        elif isinstance(event, yaml.DocumentStartEvent) and event.version not in (None, (1, 1)):
            got = "a %YAML directive"
        elif isinstance(event, yaml.ScalarEvent) and not event.style and self._inside and self._inside[-1]:
            # PyYAML takes {key:[1]} for a mapping and [a:b] for a text, libyaml refuses both.
            end = event.end_mark.index if event.end_mark else 0
            if ":" in event.value or re.match(r":\S", self._text[end : end + 2]):
                got = "a colon without a space behind it"
        if isinstance(event, yaml.CollectionStartEvent):
            self._inside.append(bool(event.flow_style))
            if len(self._inside) > _DEEPEST:
                got = f"values nested more than {_DEEPEST} deep"
        elif isinstance(event, yaml.CollectionEndEvent):
            self._inside.pop()
        if got:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise ParameterError(f"parameter file {self._path}, line {line}", got=got, remedy="write plain values")
        return event


def _entries(node: yaml.Node, path: Path, where: str) -> list[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise _refuse(path, node, f"no keys under {where}", "NODE: ros__parameters: NAME: VALUE")
    entries: dict[str, yaml.Node] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or not key.value:
            raise _refuse(path, key, "a key that is not a text", "a name")
        if key.value in entries:
            raise _refuse(path, key, f"'{key.value}' twice", "each name once")
        entries[key.value] = value
    return list(entries.items())


def _collect(node: yaml.Node, path: Path, prefix: str, placed: dict[str, Placed]) -> None:
    for key, value in _entries(node, path, prefix or "ros__parameters"):
        name = f"{prefix}.{key}" if prefix else key
        line = value.start_mark.line + 1
        if isinstance(value, yaml.MappingNode):
            _collect(value, path, name, placed)
        elif isinstance(value, yaml.SequenceNode):
            items = []
            for item in value.value:
                if not isinstance(item, yaml.ScalarNode):
                    raise _refuse(path, item, f"a nested list in {name}", "a flat list")
                items.append(_scalar(item, path, name))
            if len({type(item) for item in items}) != 1:
                raise _refuse(path, value, f"an empty or mixed list in {name}", "elements of one type")
            placed[name] = Placed(tuple(items), line, _comment_behind(value))  # type: ignore[arg-type]
        else:
            placed[name] = Placed(_scalar(value, path, name), line, _comment_behind(value))


def _comment_behind(node: yaml.Node) -> str:
    """The comment behind a value on its last line, "" for none."""
    mark = node.end_mark
    behind = _COMMENT.match(mark.buffer, mark.pointer) if mark and mark.buffer else None
    return behind[1].strip() if behind else ""


def _scalar(node: yaml.Node, path: Path, name: str) -> bool | int | float | str:
    text = str(node.value)
    if _UNWRITABLE.search(text):
        raise _refuse(path, node, f"a text with NUL or an incomplete character in {name}", "a text")
    style = getattr(node, "style", None)
    if style in ("'", '"') or (style in ("|", ">") and text):
        return text
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            raise _refuse(path, node, f"{text} in {name}", "an integer of 64 bits")
        return int(text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        zero = not re.search(r"[1-9]", re.split("[eE]", text)[0])
        if not (zero or sys.float_info.min <= abs(value) < math.inf):
            raise _refuse(path, node, f"{text} in {name}", "a number of 64 bits, not beyond its range")
        return value
    if text == "" or _AMBIGUOUS.fullmatch(text):
        expected = "a number as 1.0 or 1.0e-3, true, false, or a quoted text"
        raise _refuse(path, node, f"{text or 'nothing'} in {name}", expected)
    return text


def _refuse(path: Path, node: yaml.Node, got: str, expected: str) -> ParameterError:
    return ParameterError(f"parameter file {path}, line {node.start_mark.line + 1}", got=got, expected=expected)


def format_value(value: Value) -> str:
    """A value as both YAML parsers read it back unchanged: decimal point always, texts quoted.

    A subnormal number becomes 0.0, since rcl reads it as a text.

    Raises:
        ParameterError: infinite or NaN, or a text that no file can hold.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ParameterError("parameter file", got=f"the value {value}", expected="a finite number")
        text = repr(value if abs(value) >= sys.float_info.min else math.copysign(0.0, value))
        if "e" in text:
            mantissa, exponent = text.split("e")
            mantissa += "" if "." in mantissa else ".0"
            return f"{mantissa}e{int(exponent):+03d}"
        return text
    if isinstance(value, str):
        if _UNWRITABLE.search(value):
            raise ParameterError(
                "parameter file", got=f"the text {value!r}", expected="a text that can be written to a file"
            )
        if value.isprintable():
            return "'" + value.replace("'", "''") + "'"
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    return str(value)


def write_parameters(
    path: Path,
    section: str,
    values: Mapping[str, Value],
    comments: Sequence[str] = (),
    notes: Mapping[str, str] | None = None,
    others: Sections | None = None,
) -> None:
    """Write a file with one section (a node pattern, such as `/**`) of dotted names and values, whole or not at all.

    The comments are lines for the head of the file, whose folder must exist; notes, by name, follow a value. The
    `others` are further sections, which follow with their comments, or values of the same one.
    """
    sections = {section: {name: Placed(value, comment=(notes or {}).get(name, "")) for name, value in values.items()}}
    for pattern, placed in (others or {}).items():
        sections[pattern] = {**sections.get(pattern, {}), **placed}
    lines = [f"# {_in_one_line(comment)}" for comment in comments]
    for pattern, placed in sections.items():
        lines += [f"{pattern}:", "  ros__parameters:"]
        _emit(_tree(placed), 2, lines)
    write_atomically(path, "\n".join(lines) + "\n")


def _tree(placed: Mapping[str, Placed]) -> dict[str, object]:
    """Values in mappings by the parts of their names; one below the name of another value has its whole name."""
    tree: dict[str, object] = {}
    for name, value in placed.items():
        *parents, leaf = name.split(".")
        if any(".".join(parents[: k + 1]) in placed for k in range(len(parents))):
            parents, leaf = [], name
        branch = tree
        for parent in parents:
            branch = branch.setdefault(parent, {})  # type: ignore[assignment]
        branch[leaf] = value
    return tree


def _in_one_line(text: str) -> str:
    """A comment that ends with its line, whatever a name in it contains."""
    return printable(" ".join(text.split()))


def _emit(tree: Mapping[str, object], depth: int, lines: list[str]) -> None:
    for name, value in tree.items():
        key = f"{'  ' * depth}{name if _PLAIN_KEY.fullmatch(name) else format_value(name)}:"
        if isinstance(value, dict):
            lines.append(key)
            _emit(value, depth + 1, lines)
        elif isinstance(value, Placed):
            comment = f"  # {_in_one_line(value.comment)}" if value.comment else ""
            lines.append(f"{key} {format_value(value.value)}{comment}")
