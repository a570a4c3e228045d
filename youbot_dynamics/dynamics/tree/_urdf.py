"""Read the bodies and joints of a URDF file (format: wiki.ros.org/urdf/XML)."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from youbot_dynamics.arrays import Vector, excerpt, number
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.files import read_bytes
from youbot_dynamics.kinematics.rotations import rpy_to_matrix

# URDF's joint types and those of this package; a continuous joint is a revolute one without end stops.
_TYPES = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "floating": "floating",
}


LARGEST = 5_000_000  # [bytes] of a URDF file or text
_LONGEST_PATH = 300  # characters of a path in a message
_INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a joint in a URDF; infinite where none are given."""

    lower: float = -np.inf  # smallest position [rad or m]
    upper: float = np.inf  # largest position [rad or m]
    velocity: float = np.inf  # largest speed [rad/s or m/s]
    effort: float = np.inf  # largest torque or force [N m or N]


@dataclass(frozen=True, eq=False)
class Link:
    """A body and the joint that carries it."""

    name: str  # of the link
    joint: str  # name of its joint, empty for the root
    parent: str  # name of the link that carries it, empty for the root
    joint_type: str  # "fixed", "revolute", "prismatic" or "floating"
    axis: Vector  # (3,) of the joint, in the link's frame
    placement: Vector  # (4, 4) joint frame in the parent's joint frame
    mass: float  # [kg]
    centre_of_mass: Vector  # (3,) in the link's frame [m]
    inertia: Vector  # (3, 3) about the centre of mass, in the link's axes [kg m2]
    limits: Limits  # of the joint
    damping: float  # of the joint [N m s/rad or N s/m]; read but not applied: friction is a separate model (`lugre`)
    friction: float  # of the joint [N m or N]; read but not applied
    radius: float = np.nan  # of the largest cylinder or sphere in its collisions, else visuals [m]; NaN without one


def read_urdf(
    path_or_text: str | Path,
    start: str | None = None,
    locked: Sequence[str] = (),
    limit: int = LARGEST,
    tip: str | None = None,
    lock_mimics: bool = False,
) -> tuple[Link, ...]:
    """Links of a URDF file or text, the root first and every parent before its children.

    Args:
        path_or_text: the file, in the encoding its XML declares (UTF-8 if it declares none), or its text (starting
            with `<`).
        start: link to start from; links that it does not carry are left out. The root by default.
        locked: names of joints that become fixed.
        limit: largest size of the file in bytes, before `files.scaled`.
        tip: last link of an arm; joints that are not between `start` and this link become fixed.
        lock_mimics: whether joints that mimic another become fixed.

    Raises:
        ModelError: not XML or no robot in it, a duplicate or unknown name, a link with two parents (a loop), no root or
            several roots, an unknown joint type, a joint that mimics another and is not locked, a revolute or prismatic
            joint without <limit>, an <inertial> without mass or inertia (also by a misspelt attribute), negative
            damping, friction, speed or effort, or text that is not a number.
        InputError: neither a path nor a text, or a single name instead of a list in `locked`.
    """
    root, source = _parse(path_or_text, limit)
    bodies = {_name(element, source): element for element in _once(root, "link", source)}
    if not bodies:
        raise ModelError(source, got="no link", expected="at least one", remedy="expand xacro files first")
    carried = _carried(_once(root, "joint", source), bodies, source)
    order = _parents_first(bodies, carried, source)
    links = [_link(name, bodies[name], carried.get(name), source) for name in order]
    kept = _from(start, links, source)
    still = {*locked, *_off_chain(tip, kept, source)}
    if lock_mimics:
        still |= {_name(joint, source) for joint in carried.values() if joint.find("mimic") is not None}
    chosen = [replace(link, joint_type="fixed") if link.joint in still else link for link in kept]
    _check_locked(locked, links, source)
    _check_mimics(chosen[1:], carried, source)
    return tuple(chosen)


def arm_chain(path: Path, start: str | None = None) -> tuple[str, str]:
    """First and last link of the only arm of a URDF file: from the root on until more than one branch moves.

    Branches of a single joint beside a longer one, such as wheels, do not count.

    Args:
        path: the file.
        start: link that carries the arm; the root by default.

    Raises:
        ModelError: as `read_urdf`, or no joint moves before the tree branches.
    """
    element, source = _parse(path, LARGEST)
    bodies = {_name(one, source): one for one in _once(element, "link", source)}
    carried = _carried(_once(element, "joint", source), bodies, source)
    order = _parents_first(bodies, carried, source)
    depth, children = dict.fromkeys(order, 0), dict[str, list[str]]()
    moves = {link: one.get("type") != "fixed" for link, one in carried.items()}
    for link in reversed(order[1:]):
        parent = _end(carried[link], "parent", source)
        children.setdefault(parent, []).append(link)
        depth[parent] = max(depth[parent], depth[link] + moves[link])
    first = last = start if start in bodies else order[0]
    at = first
    while branches := sorted(children.get(at, []), key=lambda link: depth[link] + moves[link], reverse=True):
        longest, *others = (depth[link] + moves[link] for link in branches)
        if longest == 0 or (others and others[0] >= min(longest, 2)):
            break
        at = branches[0]
        last = at if moves[at] else last
    if last == first:
        got, remedy = f"no arm behind link '{first}'", "name root_link and tip_link in the robot file"
        raise ModelError(source, got=got, expected="a chain of joints that move", remedy=remedy)
    return str(first), str(last)


def _carried(
    joints: Iterable[ElementTree.Element], bodies: Collection[str], source: str
) -> dict[str, ElementTree.Element]:
    """Joint that carries each link but the root; ModelError for a link that is unknown or has two parents."""
    carried: dict[str, ElementTree.Element] = {}
    for element in joints:
        child, parent = (_end(element, end, source) for end in ("child", "parent"))
        for end in (child, parent):
            if end not in bodies:
                raise ModelError(
                    f"joint '{_name(element, source)}' of {source}", got=f"link '{end}'", expected="a link"
                )
        if child in carried:
            raise ModelError(
                f"link '{child}' of {source}",
                got=f"two joints that carry it, '{_name(carried[child], source)}' and '{_name(element, source)}'",
                expected="an open tree, one parent each",
            )
        carried[child] = element
    return carried


def _parents_first(bodies: Collection[str], carried: Mapping[str, ElementTree.Element], source: str) -> list[str]:
    """Names of all links, the root first and every parent before its children; ModelError for none or several roots."""
    roots = [name for name in bodies if name not in carried]
    if len(roots) != 1:
        raise ModelError(
            f"links of {source}",
            got=f"roots {', '.join(roots)}" if roots else "a loop: every link is carried by another",
            expected="one root",
        )
    children: dict[str, list[str]] = {}
    for child, element in carried.items():
        children.setdefault(_end(element, "parent", source), []).append(child)
    order, waiting = list[str](), [roots[0]]
    while waiting:
        name = waiting.pop()
        order.append(name)
        waiting += reversed(children.get(name, []))
    if len(order) < len(bodies):
        loop = sorted(set(bodies) - set(order))
        raise ModelError(f"links of {source}", got=f"a loop of {', '.join(loop)}", expected="an open tree")
    return order


def _check_mimics(links: Iterable[Link], carried: Mapping[str, ElementTree.Element], source: str) -> None:
    """Refuse with a ModelError a joint that moves and mimics another."""
    for link in links:
        mimic = carried[link.name].find("mimic")
        if mimic is not None and link.joint_type != "fixed":
            raise ModelError(
                f"joint '{link.joint}' of {source}",
                got=f"<mimic> of joint '{mimic.get('joint', '')}'",
                expected="an independent joint",
                remedy=f"lock it (locked=['{link.joint}']), or remove <mimic> to make it independent",
            )


def _from(start: str | None, links: list[Link], source: str) -> list[Link]:
    first = links[0].name if start is None else start
    names = [link.name for link in links]
    if first not in names:
        raise ModelError(f"root link '{first}' of {source}", got="no such link", expected=f"one of {', '.join(names)}")
    kept = {first}
    for link in links:  # parents come before their children
        if link.parent in kept:
            kept.add(link.name)
    return [link for link in links if link.name in kept]


def _off_chain(tip: str | None, links: list[Link], source: str) -> set[str]:
    """Joints of links that are not between the first link and the tip; none without a tip."""
    if tip is None:
        return set()
    parents = {link.name: link.parent for link in links}
    if tip not in parents:
        raise ModelError(f"tip link '{tip}' of {source}", got="no such link", expected=f"one of {', '.join(parents)}")
    chain, name = set[str](), tip
    while name in parents:
        chain.add(name)
        name = parents[name]
    return {link.joint for link in links if link.name not in chain}


def _check_locked(locked: Sequence[str], links: list[Link], source: str) -> None:
    if isinstance(locked, str):
        raise InputError("locked", got=f"'{locked}'", expected=f"a list of names, such as ['{locked}']")
    joints = [link.joint for link in links[1:]]
    for name in locked:
        if name not in joints:
            raise ModelError(
                f"locked joint '{name}' of {source}", got="no such joint", expected=f"one of {', '.join(joints)}"
            )


def _parse(path_or_text: str | Path, limit: int) -> tuple[ElementTree.Element, str]:
    if not isinstance(path_or_text, (str, Path)):
        raise InputError("URDF", got=excerpt(path_or_text), expected="a path, or the text of one")
    source = "the URDF text"
    # A byte order mark that was read as text is a character.
    content: str | bytes = str(path_or_text).lstrip("\ufeff \t\r\n")
    if isinstance(path_or_text, Path) or not str(content).startswith("<"):
        name = str(path_or_text)
        source = Path(name).name
        shown = name if len(name) <= _LONGEST_PATH else f"{name[:_LONGEST_PATH]}..."
        content = read_bytes(name, ModelError, f"URDF file {shown}", "a file that can be read", limit)
    # In any encoding that expat takes: of UTF-16 the null bytes are left out, the others have ASCII in them.
    raw = content.encode(errors="replace") if isinstance(content, str) else content.replace(b"\0", b"")
    if b"<!DOCTYPE" in raw:
        got, remedy = "<!DOCTYPE, which can declare entities that fill the memory", "remove it"
        raise ModelError(source, got=got, expected="a URDF without it", remedy=remedy)
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, LookupError, ValueError) as problem:  # the last two: an unknown encoding
        raise ModelError(
            source, got=f"no XML: {problem}", expected="a URDF", remedy="expand xacro files first"
        ) from None
    if root.tag != "robot":
        raise ModelError(source, got=f"<{root.tag}>", expected="<robot>")
    return root, source


def _name(element: ElementTree.Element, source: str) -> str:
    name = element.get("name", "")
    if not name:
        raise ModelError(f"<{element.tag}> of {source}", got="no name", expected="a name")
    return name


def _once(root: ElementTree.Element, tag: str, source: str) -> list[ElementTree.Element]:
    elements = root.findall(tag)
    for name, count in Counter(_name(element, source) for element in elements).items():
        if count > 1:
            raise ModelError(f"{tag} '{name}' of {source}", got=f"{count} of that name", expected="one")
    return elements


def _end(joint: ElementTree.Element, end: str, source: str) -> str:
    element = joint.find(end)
    if element is None or not element.get("link"):
        raise ModelError(f"joint '{_name(joint, source)}' of {source}", got=f"no {end}", expected=f"a {end} link")
    return element.get("link", "")


def _numbers(
    thing: str, element: ElementTree.Element | None, key: str, default: str, *, bounded: bool = True
) -> Vector:
    text = default if element is None else element.get(key, default)
    try:
        numbers = np.array([_float(word) for word in text.split()])
    except ValueError:
        numbers = np.array([])
    wanted = len(default.split())
    if len(numbers) != wanted or np.isnan(numbers).any() or (bounded and np.isinf(numbers).any()):
        expected = f"{wanted} number(s){', none infinite' if bounded else ''}"
        raise ModelError(f"{thing} {key}", got=f"'{text}'", expected=expected)
    return numbers


def _float(word: str) -> float:
    if not word.isascii() or "_" in word:  # float() of Python accepts both
        raise ValueError
    return float(word)


def _pose(thing: str, parent: ElementTree.Element | None) -> Vector:
    origin = None if parent is None else parent.find("origin")
    pose = np.eye(4)
    pose[:3, 3] = _numbers(thing, origin, "xyz", "0 0 0")
    roll, pitch, yaw = _numbers(thing, origin, "rpy", "0 0 0")
    pose[:3, :3] = rpy_to_matrix(roll, pitch, yaw)
    return pose


def _with(
    thing: str, parent: ElementTree.Element, tag: str, needed: Sequence[str], allowed: Sequence[str]
) -> ElementTree.Element:
    """Child of an element that must exist, with known attributes only: a misspelt one would silently be 0."""
    element = parent.find(tag)
    if element is None:
        raise ModelError(thing, got=f"no <{tag}> in its <{parent.tag}>", expected="one")
    for key in needed:
        if key not in element.attrib:
            given = f"no {key}, but {', '.join(element.keys())}" if element.keys() else f"no {key}"
            raise ModelError(f"{thing} {tag}", got=given, expected=f"{', '.join(needed)}")
    for key in element.keys():
        if key not in (*needed, *allowed):
            raise ModelError(f"{thing} {tag}", got=f"'{key}'", expected=f"{', '.join((*needed, *allowed))}")
    return element


def _link(name: str, body: ElementTree.Element, joint: ElementTree.Element | None, source: str) -> Link:
    thing = f"link '{name}' of {source}"
    inertial = body.find("inertial")
    frame = _pose(thing, inertial)
    mass, inertia = 0.0, np.zeros((3, 3))
    if inertial is not None:
        weight = _with(thing, inertial, "mass", ("value",), ())
        mass = float(_numbers(f"{thing} mass", weight, "value", "0")[0])
        # Products of inertia are often left out where they are 0.
        tensor = _with(thing, inertial, "inertia", _INERTIA[:3], _INERTIA[3:])
        xx, yy, zz, xy, xz, yz = (float(_numbers(f"{thing} inertia", tensor, key, "0")[0]) for key in _INERTIA)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    rotation = frame[:3, :3]
    if joint is None:
        kind, limits, damping, friction, carrier, parent = "fixed", Limits(), 0.0, 0.0, "", ""
        axis = np.array([1.0, 0.0, 0.0])
    else:
        carrier, parent = _name(joint, source), _end(joint, "parent", source)
        thing = f"joint '{carrier}' of {source}"
        kind = joint.get("type", "")
        if kind not in _TYPES:
            raise ModelError(thing, got=f"type '{kind}'", expected=f"one of {', '.join(_TYPES)}")
        axis = _numbers(thing, joint.find("axis"), "xyz", "1 0 0")
        dynamics = joint.find("dynamics")
        damping, friction = (
            number(f"{thing} {key}", _numbers(thing, dynamics, key, "0")[0], low=0.0) for key in ("damping", "friction")
        )
        limits = _limits(thing, kind, joint.find("limit"))
    return Link(
        name=name,
        joint=carrier,
        parent=parent,
        joint_type=_TYPES[kind],
        axis=axis,
        placement=_pose(thing, joint),
        mass=mass,
        centre_of_mass=frame[:3, 3],
        inertia=rotation @ inertia @ rotation.T,
        limits=limits,
        damping=damping,
        friction=friction,
        radius=_radius(f"link '{name}' of {source}", body),
    )


def _radius(thing: str, body: ElementTree.Element) -> float:
    for shapes in ("collision", "visual"):
        found = [round_ for kind in ("cylinder", "sphere") for round_ in body.findall(f"{shapes}/geometry/{kind}")]
        if found:
            return max(float(_numbers(f"{thing} {one.tag}", one, "radius", "0")[0]) for one in found)
    return float("nan")


def _limits(thing: str, kind: str, element: ElementTree.Element | None) -> Limits:
    bounded = kind in ("revolute", "prismatic")
    if element is None and bounded:
        raise ModelError(
            thing,
            got=f"no <limit> of a {kind} joint",
            expected="its lower, upper, effort and velocity",
            remedy="a joint that turns without end is of type 'continuous'",
        )
    # URDF: a missing lower or upper limit is 0.
    defaults = {"lower": "0", "upper": "0"} if bounded else {"lower": "-inf", "upper": "inf"}
    defaults |= {"velocity": "inf", "effort": "inf"}
    values = {key: float(_numbers(thing, element, key, text, bounded=False)[0]) for key, text in defaults.items()}
    for key in ("velocity", "effort"):
        if values[key] < 0.0:
            raise ModelError(f"{thing} {key}", got=f"{values[key]:g}", expected="0 or more")
    if values["lower"] > values["upper"]:
        raise ModelError(thing, got=f"limits {values['lower']:g} to {values['upper']:g}", expected="lower <= upper")
    return Limits(**values)
