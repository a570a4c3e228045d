"""What a fuzzer does to an input: to bytes, to text, and to the structures readers look for."""

from __future__ import annotations

import json
import re
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from random import Random
from typing import Any

import lz4.frame
import zstandard

NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    0x7FFF,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)
LARGEST = 3_000_000  # [bytes]: what is larger takes long for being large
WORDS = (
    "-1",
    "0",
    "1e999",
    "-1e999",
    "nan",
    ".nan",
    ".inf",
    "inf",
    "1e3",
    "0x10",
    "0o7",
    "1_0",
    "9" * 30,
    "9" * 5000,
    "0.0000001",
    "1.0e-320",
    "true",
    "null",
    "~",
    "''",
    "2024-01-01",
    "12:30:00",
    "\x00",
    "\x1b[2J",
    "\u202e",
    "\ud7ff",
    "é",
    "💥",
    "a" * 3000,
)


def number_bytes(rng: Random) -> bytes:
    size = rng.choice((1, 2, 4, 8))
    return (rng.choice(NUMBERS) & ((1 << 8 * size) - 1)).to_bytes(size, rng.choice(("little", "little", "big")))


def mutate_bytes(data: bytes, rng: Random) -> bytes:
    """Some mutations of bytes, one after the other."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        kind, place = rng.randrange(9), rng.randrange(len(out) + 1)
        if kind == 0 and out:
            for _ in range(rng.choice((1, 2, 8))):
                out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
        elif kind == 1:
            new = rng.randbytes(rng.choice((1, 2, 4, 8, 40)))
            out[place : place + len(new)] = new
        elif kind == 2:
            del out[place:]
        elif kind == 3:
            start = rng.randrange(len(out) + 1)
            piece = out[start : start + rng.choice((1, 8, 64, 1000))]
            out[place : place + rng.choice((0, len(piece)))] = piece
        elif kind == 4:
            del out[place : place + rng.choice((1, 2, 4, 8, 100))]
        elif kind in (5, 6):
            new = number_bytes(rng)
            out[place : place + len(new)] = new
        elif kind == 7:
            out[place:place] = out[place : place + rng.choice((1, 10, 100))] * rng.choice((2, 10, 1000))
        else:
            out[place : place + 20] = bytes(20)
    return bytes(out[:LARGEST])


def mutate_text(text: str, rng: Random) -> str:
    """Numbers, words and lines of a text changed."""
    lines = text.splitlines(keepends=True) or [""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row, kind = rng.randrange(len(lines)), rng.randrange(9)
        if kind <= 2:
            found = list(re.finditer(r"[-\w.+]+", lines[row]))
            if found:
                at = rng.choice(found)
                lines[row] = lines[row][: at.start()] + rng.choice(WORDS) + lines[row][at.end() :]
        elif kind == 3:
            lines[row:row] = [lines[row]] * rng.choice((1, 2, 300))
        elif kind == 4:
            other = rng.randrange(len(lines))
            lines[row], lines[other] = lines[other], lines[row]
        elif kind == 5:
            del lines[row : row + rng.choice((1, 3))]
            lines = lines or [""]
        elif kind == 6:
            lines[row] = (
                rng.choice((" ", "  ", "\t", ""))
                + lines[row].strip(rng.choice((" ", "\n", "")))
                + rng.choice(("", "\n"))
            )
        elif kind == 7:
            place = rng.randrange(len(lines[row]) + 1)
            lines[row] = (
                lines[row][:place] + rng.choice(";:,[]{}&*!%@`#|>-?'\"\\/<=\x85\u2028\ufeff") + lines[row][place:]
            )
        else:
            lines[row] = rng.choice(WORDS) + "\n"
    return "".join(lines)


def as_bytes(change: Callable[[str, Random], str]) -> Callable[[bytes, Random], bytes]:
    """A mutation of text for bytes; one time in four bytes are changed as well."""

    def mutate(data: bytes, rng: Random) -> bytes:
        changed = change(data.decode(errors="replace"), rng).encode(errors="replace")
        return mutate_bytes(changed, rng) if rng.random() < 0.25 else changed

    return mutate


def mutate_yaml(text: str, rng: Random) -> str:
    """As text, and what YAML has of its own: depth, aliases, tags, many keys, directives."""
    kind = rng.randrange(12)
    deep = rng.choice((5, 33, 500, 20_000))
    lines = text.splitlines()
    row = rng.randrange(len(lines) + 1)
    more = {
        0: "x: " + "[" * deep + "]" * rng.choice((0, deep)),
        1: "x: " + "{a: " * deep + "1" + "}" * deep,
        2: "\n".join(" " * d + "a:" for d in range(min(deep, 800))),
        3: "a: &a [1, 1]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
        4: f"x: !!{rng.choice(('python/object/apply:os.system', 'binary', 'set', 'float', 'str'))} [x]",
        5: "\n".join(f"k{rng.randrange(deep * 2)}: {k}.0" for k in range(min(deep, 2000))),
        6: f"'{'/**' * min(deep, 300)}/x':\n  ros__parameters:\n    a: 1.0",
        7: "? " * min(deep, 300) + "x",
        8: f"x: [{', '.join(['1.0'] * deep)}]",
    }.get(kind)
    if more is None:
        return mutate_text(text, rng)
    indent = rng.choice(("", "  ", "    ", "      "))
    lines[row:row] = [indent + line for line in more.splitlines()]
    changed = "\n".join(lines) + "\n"
    return mutate_text(changed, rng) if rng.random() < 0.3 else changed


def strange(rng: Random, depth: int = 0) -> Any:
    """A JSON value of any kind."""
    kind = rng.randrange(9 if depth < 3 else 6)
    simple = (
        None,
        rng.choice((True, False)),
        rng.choice((-1, *NUMBERS)),
        rng.choice((1.5, 1e308, float("nan"), float("inf"))),
        rng.choice(WORDS),
        "\ud800",
    )
    if kind < 6:
        return simple[kind]
    if kind == 6:
        return [strange(rng, depth + 1) for _ in range(rng.choice((0, 1, 3)))]
    return {rng.choice(("name", "stage", "x", "")): strange(rng, depth + 1) for _ in range(rng.choice((0, 1, 3)))}


def mutate_json(text: str, rng: Random) -> str:
    """Values of a document replaced, removed, doubled; or its text changed."""
    if rng.random() < 0.3:
        return mutate_text(text, rng)
    if rng.random() < 0.05:
        deep = rng.choice((100, 100_000))
        return rng.choice(("[", '{"a":')) * deep
    document = json.loads(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        holder: Any = document
        while isinstance(holder, (dict, list)) and holder:
            key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
            if not isinstance(holder[key], (dict, list)) or not holder[key] or rng.random() < 0.4:
                if rng.random() < 0.2:
                    del holder[key]
                else:
                    holder[key] = strange(rng)
                break
            holder = holder[key]
    return json.dumps(document)


def mutate_urdf(text: str, rng: Random) -> str:
    """Elements and attributes changed; entities that multiply; depth; or the text changed."""
    kind = rng.randrange(10)
    if kind < 3:
        return mutate_text(text, rng)
    if kind == 3:
        levels = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10 if k else "x" * 50}">' for k in range(9))
        return f"<!DOCTYPE robot [{levels}]><robot name='&e8;'/>"
    if kind == 4:
        return "<robot>" + "<link>" * rng.choice((10, 5000, 100_000))
    root = ElementTree.fromstring(text)
    for _ in range(rng.choice((1, 2, 5))):
        elements = list(root.iter())
        element, other = rng.choice(elements), rng.choice(elements)
        action = rng.randrange(7)
        if action <= 2 and element.attrib:
            key = rng.choice(list(element.attrib))
            element.set(
                key, rng.choice((*(w for w in WORDS if w.isprintable()), other.get(key, ""), "1 2", "0 0 0 0", ""))
            )
        elif action == 3 and element.attrib:
            del element.attrib[rng.choice(list(element.attrib))]
        elif action == 4 and len(element):
            element.remove(rng.choice(list(element)))
        elif action == 5 and other is not root:
            root.append(other)
        else:
            element.tag = rng.choice((other.tag, "x"))
    if kind == 9:
        for number in range(rng.choice((10, 2000))):
            ElementTree.SubElement(root, "link", {"name": f"more_{number // 2 if rng.random() < 0.01 else number}"})
    return ElementTree.tostring(root, encoding="unicode")


# --- .mcap: records with lengths that are right, and contents that are not


def records_of(data: bytes) -> list[tuple[int, bytes]]:
    found, place = [], 8
    while place + 9 <= len(data) - 8:
        opcode, size = struct.unpack_from("<BQ", data, place)
        found.append((opcode, data[place + 9 : place + 9 + size]))
        place += 9 + size
    return found


def mcap_of(records: list[tuple[int, bytes]]) -> bytes:
    magic = b"\x89MCAP0\r\n"
    return magic + b"".join(struct.pack("<BQ", opcode, len(content)) + content for opcode, content in records) + magic


def mutate_chunk(content: bytes, rng: Random) -> bytes:
    """A chunk whose contents are changed and packed again, with a claim that is right or wrong."""
    size, crc, name_size = struct.unpack_from("<QII", content, 16)
    start = 32 + name_size + 8
    name, packed = content[32 : 32 + name_size].decode(), content[start:]
    inner = {"zstd": lambda: zstandard.decompress(packed, size), "lz4": lambda: lz4.frame.decompress(packed)}.get(
        name, lambda: packed
    )()
    how = rng.randrange(30)
    if how == 0:
        inner = bytes(rng.choice((1000, 10_000_000, 31_000_000, 60_000_000)))
    elif how == 1:
        inner = struct.pack("<BQHIQQ", 5, 22, rng.randrange(4), 0, rng.choice(NUMBERS), 0) * rng.choice((10, 100_000))
    elif how == 2:
        inner = inner * rng.choice((2, 50))
    else:
        inner = mutate_bytes(inner, rng)
    name = rng.choice((name, "", "zstd", "lz4", "none", "x"))
    packed = {"zstd": zstandard.compress, "lz4": lz4.frame.compress}.get(name, bytes)(inner)
    claim = rng.choice((len(inner), len(inner), len(inner), size, 0, *NUMBERS))
    head = content[:16] + struct.pack("<QII", claim, rng.choice((0, 0, crc)), len(name)) + name.encode()
    return head + struct.pack("<Q", len(packed) if rng.random() < 0.9 else rng.choice(NUMBERS)) + packed


def mutate_mcap(data: bytes, rng: Random) -> bytes:
    """Records dropped, doubled, exchanged or changed inside; or bytes anywhere."""
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    records = records_of(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place, kind = rng.randrange(len(records)), rng.randrange(6)
        opcode, content = records[place]
        if kind == 0 and len(records) > 2:
            del records[place]
        elif kind == 1:
            records[place:place] = [records[place]] * rng.choice((1, 3, 200))
        elif kind == 2:
            records[place] = (rng.choice((opcode, rng.randrange(256))), content)
        elif opcode == 6 and len(content) > 40:
            try:
                records[place] = (opcode, mutate_chunk(content, rng))
            except (struct.error, ValueError, OverflowError, RuntimeError, zstandard.ZstdError, UnicodeDecodeError):
                records[place] = (opcode, mutate_bytes(content, rng))
        else:
            records[place] = (opcode, mutate_bytes(content, rng))
    return mcap_of(records)[:LARGEST]
