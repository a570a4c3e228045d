"""Poses of a localisation from a tree of transforms, as AMCL and SLAM publish it: `map` to `odom` to the base."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError, listed
from youbot_dynamics.recording.bag._decode import IntArray, Links

_LEAST = 1e-4  # [m] or [rad] by which a correction differs from the last one; less is rounding
_WANTED = "one localisation: map -> odom and odom -> base, where the name of the middle frame contains odom"


def localised(links: Links, thing: str) -> tuple[IntArray, IntArray, Vector]:
    """Receive times (n,), stamps (n,) [ns] and poses (n, 3) of the base in the map, one for each correction.

    Between two corrections only the odometry moves the base, which would repeat the wheels. A correction is often
    stamped ahead of its time, and is valid until the next one: it belongs to the odometry that was last received before
    it. A single link is refused: without a localisation it is that of the odometry, whatever its frames are called.

    Args:
        links: by (frame, child frame).
        thing: topic and recording, for messages.

    Raises:
        RecordingError: no localisation among the links, or several, or none that corrects the odometry.
    """
    outer, inner = _localisation(links, thing)
    (received, _, corrections), (heard, stamps, odometry) = (_sound(links[link]) for link in (outer, inner))
    known = (received >= heard[0]) & (received <= heard[-1]) if len(heard) else np.zeros(len(received), dtype=bool)
    received, corrections = received[known], corrections[known]
    changed = _changes(corrections)
    if len(changed) < 2:
        invalid = [len(links[link][0]) - len(_sound(links[link])[0]) for link in (outer, inner)]
        raise RecordingError(
            thing,
            got=f"{len(links[outer][0])} transforms {' -> '.join(outer)} ({invalid[0]} of them invalid) and "
            f"{len(links[inner][0])} {' -> '.join(inner)} ({invalid[1]} invalid) with {len(changed)} corrections at a "
            "time when both are known",
            expected="a localisation that corrects the odometry again and again while the base moves",
            remedy="record while AMCL or SLAM runs",
        )
    last = np.searchsorted(heard, received[changed], side="right") - 1
    (x, y, yaw), (ahead, left, turn) = corrections[changed].T, odometry[last].T
    c, s = np.cos(yaw), np.sin(yaw)
    poses = np.column_stack([x + c * ahead - s * left, y + s * ahead + c * left, yaw + turn])
    return received[changed], stamps[last], poses


def _localisation(links: Links, thing: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The links from the map to the odometry and from there to the base.

    Raises:
        RecordingError: none, or several.
    """
    of_odometry = [link for link in links if _is_odometry(link[0]) and not _is_odometry(link[1])]
    of_base = [link for link in of_odometry if link[1].rsplit("/", 1)[-1].startswith("base")]
    found = [
        (outer, inner)
        for outer in links
        for inner in (of_base or of_odometry)
        if outer[1] == inner[0] and not _is_odometry(outer[0])
    ]
    if len(found) == 1:
        return found[0]
    shown = [" -> ".join(link) for link in sorted(links, key=lambda link: not any(map(_is_odometry, link)))]
    remedy = "record while AMCL or SLAM runs, or name a topic with poses of one robot"
    got = f"transforms {listed(shown)}" if shown else "no transforms"
    raise RecordingError(thing, got=got, expected=_WANTED, remedy=remedy)


def _is_odometry(frame: str) -> bool:
    """Whether a frame is that of odometry, by its name: that of any robot."""
    return "odom" in frame.rsplit("/", 1)[-1].lower()


def _sound(table: tuple[IntArray, IntArray, Vector]) -> tuple[IntArray, IntArray, Vector]:
    """Rows with a valid pose, in the order received: that of a recovered file may be another."""
    received, stamps, poses = table
    order = np.argsort(received, kind="stable")
    order = order[np.all(np.isfinite(poses[order]), axis=1)]
    return received[order], stamps[order], poses[order]


def _changes(corrections: Vector) -> IntArray:
    """Rows of corrections (n, 3) that differ from the last one that did."""
    changed, last = [], np.full(3, np.inf)
    for row, correction in enumerate(corrections):
        if not np.max(np.abs(correction - last)) <= _LEAST:
            changed.append(row)
            last = correction
    return np.array(changed, dtype=np.int64)
