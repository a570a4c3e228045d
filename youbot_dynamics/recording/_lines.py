"""Lines of a text log: delimiters, fields, encodings, dates."""

from __future__ import annotations

import codecs
import csv
import re

import numpy as np

from youbot_dynamics.recording._columns import Column, is_number

# Delimiters, None for blanks, with the sign of decimals.
FORMATS = ((";", "."), (";", ","), ("\t", "."), ("\t", ","), (",", "."), ("|", "."), (None, "."))
HEADER_LINES = 1000  # most of them
LONGEST_LINE = 100_000  # characters
_DATE = re.compile(r"(?=\d)(?P<day>\d{4}-\d\d-\d\d)?[T ]?(?P<clock>\d\d:\d\d:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")


def encoding_of(content: bytes) -> str:
    """Encoding of a file; a byte order mark would otherwise make the first number look like a header."""
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if wide else "utf-8-sig"
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        return "latin-1"
    return encoding


def fields_of(line: str, delimiter: str | None, decimal: str = ".") -> list[str]:
    """Fields of a line without blanks and quotes around them; one behind the last delimiter is there, too."""
    text = line.strip("\r\n").replace(decimal, ".")
    parts = text.split(delimiter)
    if '"' in text:  # a delimiter in quotes does not count; one blank of several is no field
        parts = next(csv.reader([text if delimiter else " ".join(parts)], delimiter=delimiter or " "), [])
    return [field.strip() for field in parts]


def is_date(field: str) -> bool:
    """Whether a text is a date, a time of day, or both, by ISO 8601."""
    return _DATE.fullmatch(field) is not None


def is_value(field: str, column: Column) -> bool:
    """Whether a field may stand in a column: a number, a date as a time, or nothing as a value."""
    if column.role != "time":
        return not field or is_number(field)
    return is_number(field) or (column.factor == 1.0 and is_date(field))


def unit_since_1970(time: float) -> str:
    """Unit of a time since 1970, which its size tells from 2001 to 2096: s, ms, us or ns; "" for another time."""
    units = ("s", "ms", "us", "ns")
    return next((unit for k, unit in enumerate(units) if 1e9 <= time / 1000.0**k < 4e9), "")


def value_of(field: str) -> float:
    """Number of a field, NaN for an empty one."""
    return float(field) if field.strip() else np.nan


def seconds_of(field: str) -> float:
    """Time [s]: a number, a date as seconds since 1970, or a time of day as seconds since midnight."""
    date = _DATE.fullmatch(field.strip())
    if date is None:
        return float(field)
    moment = f"{date['day'] or '1970-01-01'}T{date['clock'] or '00:00:00'}"
    return int(np.datetime64(moment, "ns").astype(np.int64)) / 1e9
