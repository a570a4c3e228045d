"""The reader of parameter files: what it takes, rcl takes alike; what it writes comes back unchanged."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from named_findings import named_finding
from repository import ROOT

from youbot_dynamics import files
from youbot_dynamics.errors import ParameterError
from youbot_dynamics.identification.least_squares import Estimate
from youbot_dynamics.identification.result import Result, write_result
from youbot_dynamics.parameter_file import (
    format_value,
    other_sections,
    read_parameters,
    read_sections,
    write_parameters,
)

HEAD = "/**:\n  ros__parameters:\n    "

# Values of one parameter.
SCALARS = """
1 1.0 -1.0 +1.0 +1 1e-3 1.0e-3 1.e-3 1.0e3 1.0E+3 1.0e+3 .5 -.5 +.5 5. +5. .5e-3 5.e+3 30 -0 0 0.0 -0.0
00 01 -01 007 09 09.5 00.5 0x1F 0X1F -0x1f 0o17 0b11 0x 0x1p3 0x1.8p1 -0x1P-2 1_000 1_0.0 _1 1_ 1:30
12:30:45 190:20:30.15 0.1e1 0e0 0.e0 1E3 1E+3 1e+3 yes no Yes NO on off On y n Y N true True TRUE false
False FALSE tRUE null ~ Null NULL inf .inf -.inf +.inf .Inf .INF nan .nan .NaN .NAN -nan -inf infinity
Infinity 2001-12-14 2001-12-14t21:59:43.10-05:00 2001-1-1 '1.0' "1.0" 'true' '' "" 'on' hello hällo 日本語
'it''s' '😀' "a\\nb" !!str !!int !foo ! &a *a *unknown [] {} [[1.0]] [null] [~] [yes,no] [1.0,2.0] [1,2]
[1.0,2] [1,2.0] [true,false] [true,1] [a,b] ['a',1] [a,1.0] [1.0,[2.0]] [1.0,null] [1e-3,2.0] ['1','2']
['1.0',2.0] [1.0,nan] [1.0,] [,] [1.0 [a:b,c] [http://x,b] http://x {c:1} {c:[1]} {c::[1]} {"c":[1]} {c}
1.0e400 -1.0e400 1e400 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
[1,9223372036854775808] 1.0e-400 4.9e-324 2.2250738585072014e-308 1.7976931348623157e+308 0.1 1.0f 1,000
1.0.0 1-2 - -- + e5 .e5 1e 1.0e+ 1.0e5.0 infx nan. 'open "bad\\q" a: = << @a `a` %a ?a :a ] } #c 1.0#c |
> |- >+ １ ٣ 1٣ 1.٣ "\\0" "\\ud800" "\\U0001F600" "\\x07"
""".split()
SPACED_SCALARS = (
    ["", "  spaced  ", "a b", "a #comment", "# comment", "'a' b", "a: b", "- 1", "? a", "1.0 # c", "tru e"]
    + ["{b: 1.0}", "{b: {c: 1.0}, d: x}", "[{b: 1.0}]", "{b: 1.0,}", "{b: }", "{c: 1, d:2}", "[a, , b]"]
    + [
        "!!str 1",
        "!!str true",
        "!!float 1",
        "!!int 1.0",
        "!!bool 'true'",
        "!!null ''",
        "!!binary aGVsbG8=",
        "! 1",
    ]
    + [
        "&a 1.0",
        "&a [1.0]",
        "!!seq [1.0]",
        "|\n      x\n      y",
        ">\n      x\n      y",
        "|\n\n",
        "1.0\n      2.0",
    ]
    + [
        "\t1.0",
        "1.0\t",
        "x\ty",
        "[1.0,\t2.0]",
        "\u00a01.0",
        "1.0\u00a0",
        "x\u0085y",
        "x\u2028y",
        "\x07",
        "\x7f",
    ]
    + [
        "\n      - 1.0\n      - 2.0",
        "\n    - 1.0",
        "\n      - [1.0]",
        "\n      - a: 1",
        "'x\n      y'",
        "x" * 2000,
    ]
)
# Names of parameters, with the value 1.0 each.
NAMES = [
    "a",
    "a.b",
    "a..b",
    ".a",
    "a.",
    "''",
    "1",
    "true",
    "y",
    "a b",
    "ä",
    "'a'",
    "? [x]\n    ",
    "!!str a",
    "&k a",
]
NAMES += ["ros__parameters", "<<", "x" * 1200, "a.b.c.d.e.f.g.h", "qos_overrides./x.publisher.depth"]
# Sections, each tried with several nodes.
SECTIONS = (
    """
/** /**/n /n n /* /*/n ** * / '' //n /n/ n/ /ns/n ns/n ns/* /ns/** /**/ns/n /ns/**/n /ns/n* /n* /*** /**n
/ns*/n /**/** /**/* /*/* /*/** /**/n/ /N ns /ns /ns/ /ns/* /*/ns/n /a/**/n /**/x/n **/n /***/n n__x 2n
/**/2n /n-x /ä 1 true _n ~n ~/n /_x/_n &s !!str ?
""".split()
    + ["/n x", "/" + "x" * 300, "/" + "/".join(["x" * 60] * 4), "? /**\n", "!!str /**"]
)
NODES = [("n", ""), ("n", "/ns"), ("n", "/a/ns")]
A, B = "  ros__parameters:\n    a: 1.0\n", "  ros__parameters:\n    a: 2.0\n"
FILES = [
    *[
        "",
        "\n",
        "# c\n",
        "---\n",
        "---\n...\n",
        "null\n",
        "~\n",
        "1\n",
        "[]\n",
        "{}\n",
        "a\n",
        "/**:\n",
        "/**: {}\n",
    ],
    *[
        "/**: 1\n",
        "/**:\n  a: 1\n",
        "/**:\n  a:\n    b: 1\n",
        "/**:\n  ros__parameters:\n",
        "/**:\n  ros__parameters: 1\n",
    ],
    *["/**:\n  ros__parameters: {}\n", "/**:\n  ros__parameters: [1]\n", "[x]: 1\n", f"- /**:\n{A}"],
    *[f"/**:\n{A}/**:\n{B}", f"/**:\n{A}    a: 2.0\n", f"/**:\n{A}{B}", f"/**:\n{A}    a:\n      b: 2.0\n"],
    *[
        f"/**:\n{A}    a.b: 2.0\n",
        f"/**:\n{A}    A: 2.0\n",
        f"/**:\n{A}  b: 2.0\n",
        f"/**:\n{A}     b: 2.0\n",
    ],
    *[f"{HEAD}a.b: 1.0\n    a:\n      b: 2.0\n", f"{HEAD}a: &x 1.0\n    b: *x\n", f"x: &x\n{A}n: *x\n"],
    *[f"{HEAD}a: &x\n      c: 1.0\n    b:\n      <<: *x\n", "/**:\n  <<: {ros__parameters: {a: 1.0}}\n"],
    *[f"/**:\n\t{A}", "/**:\n  ros__parameters:\n\t\ta: 1.0\n", "/**:\n  ros__parameters:\n    a:\t1.0\n"],
    *[
        f"---\n/**:\n{A}---\n/**:\n{B}",
        f"---\n/**:\n{A}...\n",
        f"%YAML 1.1\n---\n/**:\n{A}",
        f"%YAML 1.2\n---\n/**:\n{A}",
    ],
    *[
        f"\ufeff/**:\n{A}",
        f"/**:\n{A}".replace("\n", "\r\n"),
        "{/**: {ros__parameters: {a: 1.0}}}",
        f"/**:\n  !!map\n{A}",
    ],
    *[
        f"/**:\n{A}n:\n{B}",
        f"n:\n{A}/**:\n{B}",
        f"/n:\n{A}n:\n{B}",
        f"n:\n{A}/n:\n{B}",
        f"/**/n:\n{A}/**:\n{B}",
    ],
    *[f"/**:\n{A}/ns/n:\n{B}", f"/ns/n:\n{A}/**:\n{B}", f"ns/n:\n{A}/**/n:\n{B}/**:\n{A}", f"/m:\n{A}"],
    "/ns:\n  n:\n    ros__parameters:\n      a: 1.0\n",
    "ns:\n  n:\n    ros__parameters:\n      a: 1.0\n",
    "/:\n  n:\n    ros__parameters:\n      a: 1.0\n",
    "/**:\n  n:\n    ros__parameters:\n      a: 1.0\n",
    "/ns:\n  /n:\n    ros__parameters:\n      a: 1.0\n",
    "/ns:\n  '*':\n    ros__parameters:\n      a: 1.0\n",
    "ns:\n  x:\n    n:\n      ros__parameters:\n        a: 1.0\n",
    "/ns:\n  n: 1\n",
    "/ns:\n  n:\n    a: 1.0\n",
    "/ns:\n  n:\n    ros__parameters:\n      a: 1.0\n    b: 1\n",
    "/ns:\n  n:\n    ros__parameters:\n      a: 1.0\n  m:\n    ros__parameters:\n      a: 2.0\n",
    "/ns:\n  ros__parameters:\n    a: 1.0\n  n:\n    ros__parameters:\n      a: 2.0\n",
]
CORPUS = (
    [(f"{HEAD}a: {scalar}\n", "n", "") for scalar in SCALARS + SPACED_SCALARS]
    + [(f"{HEAD}{name}: 1.0\n", "n", "") for name in NAMES]
    + [(f"{section}:\n{A}", *node) for section in SECTIONS for node in NODES]
    + [(text, *node) for text in FILES for node in NODES[:2]]
)

# Constructs a node for each case of the corpus, as `ros2 run ... --params-file` does.
RCL_READER = """
import json, sys, rclpy
from pathlib import Path
from rclpy.context import Context
from rclpy.node import Node

def read(path, name, namespace):
    context = Context()
    try:
        rclpy.init(args=["--ros-args", "--params-file", path], context=context)
    except Exception as problem:
        return {"refused": str(problem)[:300]}
    try:
        node = Node(name, namespace=namespace, context=context, start_parameter_services=False,
                    enable_rosout=False, allow_undeclared_parameters=True,
                    automatically_declare_parameters_from_overrides=True)
        values = {key: value.value for key, value in node._parameter_overrides.items()}
        node.destroy_node()
    except Exception as problem:
        return {"refused": str(problem)[:300]}
    finally:
        rclpy.shutdown(context=context)
    plain = (bool, int, float, str)
    return {"values": {k: v if isinstance(v, plain) else list(v) for k, v in values.items()}}

folder = Path(sys.argv[1])
answers = []
for k, (text, name, namespace) in enumerate(json.loads((folder / "corpus.json").read_text())):
    (folder / f"{k}.yaml").write_text(text, encoding="utf-8")
    answers.append(read(str(folder / f"{k}.yaml"), name, namespace))
(folder / "answers.json").write_text(json.dumps(answers))
"""


def own_corpus(folder: Path) -> list[tuple[str, str, str]]:
    """Every file of ours, as each of its nodes would read it."""
    values = {f"robot.base.delay.effective_{axis}": v for axis, v in (("x", 0.15), ("y", 1e-5), ("yaw", 1 / 3))}
    delays = tuple(named_finding(name, Estimate(name, "s", value, 1e-3, (0.1, 0.2))) for name, value in values.items())
    write_result(folder, Result("it's a 'youBot'", delays, ("delay",), {}, dict.fromkeys(values, "delay"), ()))
    texts = [
        path.read_text(encoding="utf-8") for path in [*sorted((ROOT / "config").glob("*.yaml")), folder / "result.yaml"]
    ]
    return [(text, name, ns) for text in texts for name in ("mock_youbot", "odometry") for ns in ("", "/left")]


@pytest.fixture(scope="module")
def both_readers(
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[tuple[str, str, str], object, object]]:
    """Case, what we read and what rcl reads of it; a text where refused."""
    folder = tmp_path_factory.mktemp("corpus")
    corpus = CORPUS + own_corpus(folder)
    (folder / "corpus.json").write_text(json.dumps(corpus))
    environment = {**os.environ, "ROS_LOG_DIR": str(folder), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    command = [sys.executable, "-c", RCL_READER, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    results = []
    for k, answer in enumerate(json.loads((folder / "answers.json").read_text())):
        _, name, namespace = corpus[k]
        try:
            ours: object = {key: _plain(v) for key, v in read_parameters(folder / f"{k}.yaml", name, namespace).items()}
        except ParameterError as problem:
            ours = str(problem)
        theirs = answer["refused"] if "refused" in answer else answer["values"]
        results.append((corpus[k], ours, theirs))
    return results


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _same(ours: object, theirs: object) -> bool:
    """Equal in value, type and the sign of a zero."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in ours)
    return repr(ours) == repr(theirs)


@pytest.mark.ros
def test_what_our_reader_accepts_rcl_reads_alike(both_readers: list) -> None:
    taken = [(case, ours, theirs) for case, ours, theirs in both_readers if isinstance(ours, dict)]
    differing = [row for row in taken if not _same(row[1], row[2])]
    assert not differing, "\n".join(
        f"{case!r}\n   ours {ours!r}\n   rcl  {theirs!r}" for case, ours, theirs in differing
    )
    assert len(taken) > 200  # the reader does not pass by refusing everything


@pytest.mark.ros
def test_what_rcl_refuses_our_reader_refuses_with_one_line(both_readers: list) -> None:
    refused = [(case, ours) for case, ours, theirs in both_readers if isinstance(theirs, str)]
    assert len(refused) > 100
    assert not [case for case, ours in refused if not isinstance(ours, str)]
    for _, ours in refused:
        assert ours.startswith("parameter file ") and "\n" not in ours


@pytest.mark.ros
def test_every_file_of_ours_is_accepted_by_both(both_readers: list, tmp_path: Path) -> None:
    own = both_readers[len(CORPUS) :]
    assert len(own) == len(own_corpus(tmp_path)) >= 12
    for case, ours, theirs in own:
        assert isinstance(ours, dict) and isinstance(theirs, dict), (case, ours, theirs)
    assert any("truth.lag" in ours for _, ours, _ in own) and any("robot.robot_id" in ours for _, ours, _ in own)


def read_text(tmp_path: Path, text: str, node: str = "n", namespace: str = "") -> dict:
    path = tmp_path / "p.yaml"
    path.write_text(text, encoding="utf-8")
    return read_parameters(path, node, namespace)


@pytest.mark.parametrize(
    "scalar", ["1e-3", "yes", "on", "n", "0x10", "010", "null", "~", "inf", ".nan", "1_000", "2001-12-14"]
)
def test_a_scalar_that_parsers_read_differently_is_refused_and_the_line_named(tmp_path: Path, scalar: str) -> None:
    with pytest.raises(ParameterError, match=r"p\.yaml, line 3: got .* in a; expected a number as 1\.0"):
        read_text(tmp_path, f"{HEAD}a: {scalar}\n")


def test_a_comment_ends_with_its_line_whatever_is_in_it(tmp_path: Path) -> None:
    path, evil = tmp_path / "p.yaml", "a\n/**: {ros__parameters: {b: 1}}\r\x85\u2028\x07\ud800"
    write_parameters(path, "/**", {"b": 2, "c.d": 3}, [evil], {"b": evil, "c.d": "of c.d"})
    assert read_parameters(path, "") == {"b": 2, "c.d": 3}
    assert len(path.read_text().split("\n")) == 7 and "d: 3  # of c.d\n" in path.read_text()


def test_what_files_say_beside_the_robot_is_written_behind_it_with_its_comments(tmp_path: Path) -> None:
    first, later, out = (tmp_path / f"{name}.yaml" for name in ("first", "later", "out"))
    first.write_text(
        f"{HEAD}robot: {{mass: 1.0}}\n    level: 3\n/**/n:\n  ros__parameters:\n"
        "    kind: 'a # b'  # takes # speeds\n    list: [1, 2] #two\n    robot: {mass: 2.0}\n"
    )
    later.write_text("'**/n':\n  ros__parameters: {list: [3], list.max: 4, 'x: y': {z: 5}}\n")
    write_parameters(out, "/**", {"robot.mass": 3.0}, others=other_sections([first, later], "robot"))
    assert read_parameters(out, "") == {"robot.mass": 3.0, "level": 3}
    own = {"kind": "a # b", "list": (3,), "robot.mass": 2.0, "list.max": 4, "x: y.z": 5}
    assert {name: placed.value for name, placed in read_sections(out)["/**/n"].items()} == own
    assert "    kind: 'a # b'  # takes # speeds\n    list: [3]\n" in out.read_text()


def test_an_integer_stays_an_integer_and_a_float_a_float(tmp_path: Path) -> None:
    values = read_text(tmp_path, f"{HEAD}a: 30\n    b: 30.0\n    c: [1.0e-3, 2.]\n    d: '1.0'\n    e: true\n")
    assert values == {"a": 30, "b": 30.0, "c": (1e-3, 2.0), "d": "1.0", "e": True}
    assert [type(value) for value in values.values()] == [int, float, tuple, str, bool]


def test_a_bare_node_name_does_not_reach_a_node_in_a_namespace(tmp_path: Path) -> None:
    text = f"n:\n{A}"
    assert read_text(tmp_path, text) == {"a": 1.0}
    assert read_text(tmp_path, text, namespace="ns") == {}
    assert read_text(tmp_path, f"/**/n:\n{A}", namespace="ns") == {"a": 1.0}
    assert read_text(tmp_path, f"/**/n:\n{A}") == {"a": 1.0}


def test_later_sections_win_in_the_order_of_the_file(tmp_path: Path) -> None:
    assert read_text(tmp_path, f"/**:\n{A}/n:\n{B}") == {"a": 2.0}
    assert read_text(tmp_path, f"/n:\n{B}/**:\n{A}") == {"a": 1.0}


def test_a_missing_file_and_a_binary_one_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="No such file"):
        read_sections(tmp_path / "absent.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParameterError, match="not a UTF-8 text"):
        read_sections(tmp_path / "binary.yaml")


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    assert read_text(tmp_path, "# nothing yet\n") == {}


def written_and_read(tmp_path: Path, values: dict) -> dict:
    path = tmp_path / "w.yaml"
    write_parameters(path, "/**", values, ["a comment: with - yaml [in it"])
    return read_parameters(path, "anything", "any/where")


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False), min_size=1, max_size=5))
@settings(max_examples=80)
def test_every_number_comes_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    folder = tmp_path_factory.getbasetemp()
    back = written_and_read(folder, {"list": tuple(values), "one.deep.number": values[0]})
    assert repr(back["list"]) == repr(tuple(values))
    assert repr(back["one.deep.number"]) == repr(values[0])


@given(
    text=st.text(max_size=30),
    other=st.sampled_from(["it's", '"x"', "\\", "a: b # c", "", "1.0", "true", "\n", "\x85\t"]),
)
@settings(max_examples=80)
def test_every_text_comes_back_unchanged(tmp_path_factory: pytest.TempPathFactory, text: str, other: str) -> None:
    texts = tuple(t.replace("\x00", "") for t in (text, other, other + text))
    if any("\ud800" <= c <= "\udfff" for c in text):
        return
    assert written_and_read(tmp_path_factory.getbasetemp(), {"t": texts, "s": texts[2]}) == {
        "t": texts,
        "s": texts[2],
    }


def test_a_subnormal_number_is_written_as_zero_because_rcl_takes_it_for_a_text(tmp_path: Path) -> None:
    assert format_value(5e-324) == "0.0" and format_value(-1e-310) == "-0.0"
    with pytest.raises(ParameterError, match="beyond its range"):
        read_text(tmp_path, f"{HEAD}a: 4.9e-324\n")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "nul\x00", "half \ud800"])
def test_what_could_not_be_read_back_is_not_written(tmp_path: Path, value: object) -> None:
    with pytest.raises(ParameterError):
        write_parameters(tmp_path / "w.yaml", "/**", {"a": value})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["replace", "fsync"])
def test_the_old_file_stays_whole_when_writing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    path = tmp_path / "result.yaml"
    write_parameters(path, "/**", {"a": 1.0})
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, stage, fail)
    with pytest.raises(OSError, match="No space"):
        write_parameters(path, "/**", {"a": 2.0})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_reader_never_meets_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "result.yaml"
    write_parameters(path, "/**", {"a": 1.0})
    seen = []
    replace = os.replace
    monkeypatch.setattr(files.os, "replace", lambda a, b: (seen.append(read_parameters(path, "n")), replace(a, b)))
    write_parameters(path, "/**", {"a": 2.0})
    assert seen == [{"a": 1.0}]
    assert read_parameters(path, "n") == {"a": 2.0}
    assert path.stat().st_mode & 0o777 == 0o644
