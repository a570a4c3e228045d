"""Arcs of SE(2) on plain numbers, for compiled loops: `planar` without its checks (system 28)."""

from __future__ import annotations

from math import cos, pi, sin

from youbot_dynamics.compiled import compiled

_SMALL_TURN = 1e-4  # [rad], as in `planar`: below it series stand in for the quotients


@compiled
def _quotients(turn: float) -> tuple[float, float]:
    """Return sin(a)/a and (1 - cos(a))/a for a = turn [rad]."""
    if abs(turn) < _SMALL_TURN:
        return 1.0 - turn * turn / 6.0, turn / 2.0 - turn * turn * turn / 24.0
    half = sin(0.5 * turn)
    return sin(turn) / turn, 2.0 * half * half / turn


@compiled
def along(x: float, y: float, yaw: float, dx: float, dy: float, turn: float) -> tuple[float, float, float]:
    """Pose reached from (x, y, yaw) by a body displacement (dx, dy, turn) [m, m, rad]; the yaw is not wrapped."""
    a, b = _quotients(turn)
    ahead, left = dx * a - dy * b, dx * b + dy * a
    c, s = cos(yaw), sin(yaw)
    return x + c * ahead - s * left, y + s * ahead + c * left, yaw + turn


@compiled
def between(x: float, y: float, yaw: float, to_x: float, to_y: float, to_yaw: float) -> tuple[float, float, float]:
    """Body displacement [m, m, rad] of the arc from one pose to another; it turns by at most pi."""
    c, s = cos(yaw), sin(yaw)
    ahead, left = c * (to_x - x) + s * (to_y - y), c * (to_y - y) - s * (to_x - x)
    turn = (to_yaw - yaw + pi) % (2.0 * pi) - pi
    a, b = _quotients(turn)
    scale = a * a + b * b
    return (ahead * a + left * b) / scale, (left * a - ahead * b) / scale, turn
