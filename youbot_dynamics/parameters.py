"""One table for parameters: name, type, default, unit, range, description, source; nodes, files and docs read it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar, get_args, get_type_hints

from youbot_dynamics.errors import ParameterError, did_you_mean

_OF_NODES = {"command_interface": "/**/base_controller"}  # sections of parameters that are taken for the robot's
Value: TypeAlias = bool | int | float | str | tuple[float, ...] | tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a node, or one fact of the robot."""

    name: str  # dotted name as in a ROS parameter file
    default: Value  # value where no file says otherwise; its type is the parameter's type
    description: str  # what it does, for `ros2 param describe` and the docs
    unit: str = ""  # SI unit, "1" for a pure number, "" for text and switches
    low: float | None = None  # smallest accepted value (element-wise), None for none
    high: float | None = None  # largest accepted value (element-wise), None for none
    # Where the default comes from: a publication, a data sheet, a file of the driver, or "chosen: reason".
    source: str = ""
    read_only: bool = False  # True where a change needs a relaunch
    choices: tuple[str, ...] = ()  # the accepted texts, empty for any
    length: int | None = None  # required number of elements of a list, None for any

    def check(self, value: Any) -> Value:
        """Return `value` in the parameter's own type.

        Raises:
            ParameterError: wrong type, length, not finite, out of range, or not among the choices.
        """
        default = self.default
        if isinstance(default, tuple):
            wanted = "a list of texts" if default and isinstance(default[0], str) else "a list of floats"
            if not isinstance(value, (list, tuple)) and not hasattr(value, "tolist"):
                raise self._refuse(value, wanted)
            items: tuple[Any, ...] = tuple(value.tolist()) if hasattr(value, "tolist") else tuple(value)
            if self.length is not None and len(items) != self.length:
                raise self._refuse(value, f"{self.length} elements")
            if wanted == "a list of texts":
                if not all(isinstance(item, str) for item in items):
                    raise self._refuse(value, wanted)
                return items
            for item in items:
                self._check_number(item, float, wanted)
            return tuple(float(item) for item in items)
        if isinstance(default, (bool, str)):
            if type(value) is not type(default):
                raise self._refuse(value, "true or false" if isinstance(default, bool) else "a text")
            if self.choices and value not in self.choices:
                raise self._refuse(value, f"one of {', '.join(self.choices)}")
            return value
        kind = int if isinstance(default, int) else float
        self._check_number(value, kind, "an integer" if kind is int else "a number with a decimal point")
        return value  # type: ignore[no-any-return]

    def _check_number(self, value: object, kind: type, wanted: str) -> None:
        if type(value) is not kind or not isinstance(value, (int, float)):
            raise self._refuse(value, ", ".join(filter(None, (wanted, self.range_text()))))
        if not math.isfinite(value):
            raise self._refuse(value, "a finite number")
        if (self.low is not None and value < self.low) or (self.high is not None and value > self.high):
            raise self._refuse(value, self.range_text())

    def _refuse(self, value: object, expected: str) -> ParameterError:
        return ParameterError(f"parameter {self.name}", got=repr(value), expected=expected)

    def range_text(self) -> str:
        """Range with its unit, such as `0.0 to 1.0 [s]`; empty where there is none."""
        if self.low is None and self.high is None:
            return ""
        low = "-inf" if self.low is None else f"{self.low:g}"
        high = "inf" if self.high is None else f"{self.high:g}"
        return f"{low} to {high}" + (f" [{self.unit}]" if self.unit else "")


def is_unknown(value: Value) -> bool:
    """Whether a fact is unknown: NaN until it is identified or given."""
    return isinstance(value, float) and math.isnan(value)


def fact(
    description: str,
    unit: str = "",
    bounds: tuple[float | None, float | None] = (None, None),
    *,
    source: str,
    length: int | None = None,
) -> Any:
    """Dataclass field of a robot fact: its value stands in a file, everything else here."""
    metadata = {"description": description, "unit": unit, "low": bounds[0], "high": bounds[1]}
    return dataclasses.field(metadata={**metadata, "source": source, "length": length})


def setting(
    default: Value,
    description: str,
    unit: str = "",
    bounds: tuple[float | None, float | None] = (None, None),
    *,
    source: str,
    read_only: bool = False,
    choices: tuple[str, ...] = (),
) -> Any:
    """Dataclass field of a behaviour that can be tuned: the default stands here."""
    limits = {"unit": unit, "low": bounds[0], "high": bounds[1], "choices": choices}
    metadata = {"default": default, "description": description, **limits, "source": source, "read_only": read_only}
    return dataclasses.field(default=default, metadata=metadata)


# Of what a change needs a relaunch.
fixed_parameter, fixed_setting = partial(Parameter, read_only=True), partial(setting, read_only=True)


class Settings:
    """Base of dataclasses of `setting` fields: a value that its parameter would refuse is refused here, too."""

    def __post_init__(self) -> None:
        """Check all values; a whole number counts as a decimal one.

        Raises:
            ParameterError: as `Parameter.check`.
        """
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            if item.metadata:
                value = getattr(self, item.name)
                if type(item.default) is float and type(value) is int:
                    try:
                        value = float(value)
                    except OverflowError:
                        value = math.inf
                Parameter(item.name, **item.metadata).check(value)


def facts_of(cls: type, prefix: str | None, elements: int = 0) -> tuple[tuple[str, type, Mapping[str, Any]], ...]:
    """Flatten a nested dataclass of facts or settings: (name, type, metadata) of each, in order.

    Names are dotted paths that begin with `prefix`, or for None the fields' own names, as those of settings are. A
    field `joints` that is a tuple of dataclasses has that number of `elements`, named joint_1, joint_2, ...
    """
    leaves: list[tuple[str, type, Mapping[str, Any]]] = []
    hints = get_type_hints(cls)
    for item in dataclasses.fields(cls):
        name, kind = _path(prefix, item.name), hints[item.name]
        if (element := _element_of(kind)) is not None:
            for k in range(elements):
                leaves.extend(facts_of(element, _element_name(name, k)))
        elif dataclasses.is_dataclass(kind):
            leaves.extend(facts_of(kind, None if prefix is None else name, elements))  # type: ignore[arg-type]
        elif item.metadata:
            leaves.append((name, kind, item.metadata))
    return tuple(leaves)


def _path(prefix: str | None, name: str) -> str:
    return name if prefix is None else f"{prefix}.{name}"


def _element_of(kind: Any) -> type | None:
    """Dataclass of which `kind` is a tuple; None for all other types."""
    arguments = get_args(kind)
    return arguments[0] if arguments and dataclasses.is_dataclass(arguments[0]) else None  # type: ignore[return-value]


def _element_name(name: str, k: int) -> str:
    return f"{name.removesuffix('s')}_{k + 1}"


def settings_table(cls: type) -> tuple[Parameter, ...]:
    """Parameter table of the `setting` fields of a dataclass, nested ones by their own names."""
    return tuple(Parameter(name, **metadata) for name, _, metadata in facts_of(cls, None))


def fact_table(cls: type, prefix: str, values: Mapping[str, Value], elements: int = 0) -> tuple[Parameter, ...]:
    """Read-only parameter table of a dataclass of facts, with `values` (dotted names) as its defaults.

    `elements` is as in `facts_of`.

    Raises:
        ParameterError: when a value is missing, unknown, or breaks its own range.
    """
    leaves = facts_of(cls, prefix, elements)
    check_names(values, (name for name, _, _ in leaves))
    table = []
    for name, _, metadata in leaves:
        if name not in values:
            raise ParameterError(f"parameter {name}", got="no value", expected="one in the configuration file")
        parameter = Parameter(name, values[name], read_only=True, **metadata)
        if not is_unknown(values[name]):
            parameter.check(values[name])
        table.append(parameter)
    return tuple(table)


def settings_from_values(cls: type[T], values: Mapping[str, Value]) -> T:
    """Fill a dataclass of settings by the names of its table; what has no value keeps its default."""
    return build(cls, None, values)


def build(cls: type[T], prefix: str | None, values: Mapping[str, Value]) -> T:
    """Fill a nested dataclass by the names of `facts_of`; facts must all be there. The inverse of `values_in`."""
    arguments: dict[str, Any] = {}
    hints = get_type_hints(cls)
    for item in dataclasses.fields(cls):  # type: ignore[arg-type]
        name, kind = _path(prefix, item.name), hints[item.name]
        if (element := _element_of(kind)) is not None:
            built: list[Any] = []
            while any(full.startswith(f"{_element_name(name, len(built))}.") for full in values):
                built.append(build(element, _element_name(name, len(built)), values))
            arguments[item.name] = tuple(built)
        elif dataclasses.is_dataclass(kind):
            arguments[item.name] = build(kind, None if prefix is None else name, values)  # type: ignore[arg-type]
        elif item.metadata and name in values:
            arguments[item.name] = values[name]
    return cls(**arguments)


def values_in(facts: object, prefix: str) -> dict[str, Value]:
    """Dotted names and values of a nested dataclass of facts."""
    values: dict[str, Value] = {}
    for item in dataclasses.fields(facts):  # type: ignore[arg-type]
        name, value = f"{prefix}.{item.name}", getattr(facts, item.name)
        if dataclasses.is_dataclass(value):
            values |= values_in(value, name)
        elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
            for k, element in enumerate(value):
                values |= values_in(element, _element_name(name, k))
        elif item.metadata:
            values[name] = value
    return values


def check_names(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a name that is not in the table.

    Raises:
        ParameterError: names the unknown parameter and the nearest known one, or the section where it belongs.
    """
    table = list(known)
    for name in names:
        if name not in table:
            section = _OF_NODES.get(leaf := name.rpartition(".")[2])
            own = f"put it into a section of its own: {section}: ros__parameters: {leaf}, as in docs/new_robot.md"
            remedy = own if section else did_you_mean(name, table) or f"known: {', '.join(sorted(table))}"
            raise ParameterError(f"parameter {name}", got="an unknown name", remedy=remedy)
