"""Poses of a localisation from a tree of transforms, as AMCL and SLAM publish it: `map` to `odom` to the base."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.arrays import Vector
from youbot_dynamics.errors import RecordingError
from youbot_dynamics.recording.bag._decode import IntArray, Links

_ODOM = "odom"
_MOST_LISTED = 8


def localised(links: Links, thing: str) -> tuple[IntArray, IntArray, Vector]:
    """Receive times (n,), stamps (n,) [ns] and poses (n, 3) of the base in the map, one for each correction.

    Between two corrections only the odometry moves the base, which would repeat the wheels. A correction is often
    stamped ahead of its time, and is valid until the next one: it belongs to the odometry that was last received before
    it. The only link of a tree, as a tracker publishes it, is taken as it is.

    Args:
        links: by (frame, child frame).
        thing: topic and recording, for messages.

    Raises:
        RecordingError: no localisation among the links, or several.
    """
    if len(links) == 1 and not _is_odometry(next(iter(links))[0]):
        return next(iter(links.values()))
    found = [
        (outer, inner)
        for outer in links
        for inner in links
        if outer[1] == inner[0] and _is_odometry(inner[0]) and not _is_odometry(outer[0])
    ]
    if len(found) != 1:
        shown = [f"{frame} -> {child}" for frame, child in links]
        more = f" and {len(shown) - _MOST_LISTED} more" if len(shown) > _MOST_LISTED else ""
        raise RecordingError(
            thing,
            got=f"transforms {', '.join(shown[:_MOST_LISTED])}{more}",
            expected="one localisation: map -> odom and odom -> base",
            remedy="record while AMCL or SLAM runs, or name a topic with poses of one robot",
        )
    (received, _, corrections), (heard, stamps, odometry) = (links[link] for link in found[0])
    changed = np.flatnonzero(np.any(np.diff(corrections, axis=0, prepend=np.nan) != 0.0, axis=1))
    last = np.searchsorted(heard, received[changed], side="right") - 1
    changed, last = changed[last >= 0], last[last >= 0]
    (x, y, yaw), (ahead, left, turn) = corrections[changed].T, odometry[last].T
    c, s = np.cos(yaw), np.sin(yaw)
    poses = np.column_stack([x + c * ahead - s * left, y + s * ahead + c * left, yaw + turn])
    return received[changed], stamps[last], poses


def _is_odometry(frame: str) -> bool:
    """Whether a frame is that of odometry, by its name: that of any robot."""
    return frame.rsplit("/", 1)[-1].startswith(_ODOM)
