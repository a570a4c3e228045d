"""URDF files as they come: encodings, byte order marks, misspelt attributes and numbers that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from youbot_dynamics.dynamics.tree import Tree
from youbot_dynamics.errors import InputError, ModelError

MASS = '<mass value="2"/>'
INERTIA = '<inertia ixx="1" ixy="0.1" ixz="0" iyy="1" iyz="0" izz="1"/>'
TEXT = f"""<robot name="größe">
  <link name="fuß"/>
  <link name="b"><inertial><origin xyz="0.1 0 0"/>{MASS}{INERTIA}</inertial></link>
  <joint name="j" type="continuous"><parent link="fuß"/><child link="b"/><axis xyz="0 0 1"/></joint>
</robot>"""
LONG = TEXT + "<!-- " + "x" * 10000 + " -->"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_a_file_is_read_in_the_encoding_it_declares(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "robot.urdf"
    declared = encoding.removesuffix("-sig")
    path.write_bytes(f'<?xml version="1.0" encoding="{declared}"?>\n{TEXT}'.encode(encoding))
    assert Tree.from_urdf(path).names == ("fuß", "b")
    assert Tree.from_urdf(str(path)).names == ("fuß", "b")


def test_an_encoding_that_is_none_is_refused_by_file(tmp_path: Path) -> None:
    path = tmp_path / "robot.urdf"
    for declared in ("klingon", "utf-7"):
        path.write_bytes(f'<?xml version="1.0" encoding="{declared}"?>{TEXT}'.encode())
        with pytest.raises(ModelError, match=r"^robot\.urdf: got no XML"):
            Tree.from_urdf(path)
    path.write_bytes(TEXT.encode("iso-8859-1"))  # and does not say so
    with pytest.raises(ModelError, match=r"^robot\.urdf: got no XML"):
        Tree.from_urdf(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_a_document_type_is_refused_before_its_entities_are_expanded(tmp_path: Path, encoding: str) -> None:
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>\n'
    harmless = f"{declared}<!DOCTYPE robot [<!ENTITY fuss 'f'>]>{TEXT}"
    path = tmp_path / "robot.urdf"
    path.write_bytes(harmless.encode(encoding))
    for given in (path, harmless.removeprefix(declared)):
        with pytest.raises(ModelError, match=r"got <!DOCTYPE, which can declare entities.*; remove it"):
            Tree.from_urdf(given)


def test_a_byte_order_mark_before_a_text_is_no_path() -> None:
    assert Tree.from_urdf("\ufeff" + TEXT).names == ("fuß", "b")
    assert Tree.from_urdf("\ufeff\n " + LONG).names == ("fuß", "b")


@pytest.mark.parametrize("wrong", [TEXT.encode(), None, 3, ["robot.urdf"]], ids=["bytes", "none", "number", "list"])
def test_what_is_neither_path_nor_text_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="^URDF: got .*; expected a path, or the text of one"):
        Tree.from_urdf(wrong)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "x" + LONG, ""], ids=["null", "long", "text", "empty"])
def test_a_name_of_no_file_is_refused_without_repeating_all_of_it(name: str) -> None:
    with pytest.raises(ModelError, match="^URDF file .*; expected a file that can be read") as caught:
        Tree.from_urdf(name)
    assert len(str(caught.value)) < 450


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('izz="1"', "", "inertia: got no izz, but ixx, ixy, ixz, iyy, iyz; expected ixx, iyy, izz"),
        ('ixx="1"', 'xx="1"', "inertia: got no ixx, but xx"),
        ('ixy="0.1"', 'iyx="0.1"', "inertia: got 'iyx'; expected ixx, iyy, izz, ixy, ixz, iyz"),
        (INERTIA, "<inertia/>", "inertia: got no ixx; expected ixx, iyy, izz"),
        (INERTIA, "", "got no <inertia> in its <inertial>"),
        (MASS, "", "got no <mass> in its <inertial>"),
        (MASS, '<mass val="2"/>', "mass: got no value, but val; expected value"),
        (MASS, "<mass/>", "mass: got no value; expected value"),
        (MASS, '<mass value="1_0"/>', "mass value: got '1_0'; expected 1 number"),
        (MASS, '<mass value="\u0661"/>', "mass value: got '\u0661'; expected 1 number"),
        (MASS, '<mass value="\uff12"/>', "mass value: got '\uff12'; expected 1 number"),
    ],
)
def test_an_inertia_that_would_be_silently_zero_or_misread_is_refused_by_link(old: str, new: str, says: str) -> None:
    assert old in TEXT
    with pytest.raises(ModelError, match=f"^link 'b' of the URDF text {says}".replace("text got", "text: got")):
        Tree.from_urdf(TEXT.replace(old, new))


def test_products_of_inertia_may_be_left_out_where_they_are_zero() -> None:
    short = Tree.from_urdf(TEXT.replace(INERTIA, '<inertia ixx="1" iyy="1" izz="1"/>'))
    full = Tree.from_urdf(TEXT.replace('ixy="0.1"', 'ixy="0"'))
    np.testing.assert_array_equal(short.layout.inertias, full.layout.inertias)


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e150, 1e200, 1.7e308])
def test_an_axis_of_any_length_is_a_direction(scale: float) -> None:
    axis = f'"0 {0.6 * scale!r} {0.8 * scale!r}"'
    found = Tree.from_urdf(TEXT.replace('"0 0 1"', axis)).layout.axes[1]
    np.testing.assert_allclose(found, [0.0, 0.6, 0.8], rtol=1e-15)
