"""Normal forces of wheels of which some may have lifted, for fast loops. Source: document 004, system 54."""

from __future__ import annotations

from math import sqrt
from typing import Any

from youbot_dynamics.compiled import compiled
from youbot_dynamics.dynamics.normal_forces import FELT

_LINE = 1e-12  # square of width over length below which wheels in a row support no moment about the row


@compiled
def plate_with_lifted_wheels(weight: float, load_x: float, load_y: float, wheels: Any) -> tuple[float, float, float]:
    """Height l0 at the pole and slopes lx, ly of a plate on springs that only push: N_i = max(0, k_i height_i).

    This is the scalar version of `normal_forces.Plate` for fast loops and a known load. The set of carrying wheels is
    unique; changing the first wrong wheel again and again finds it (Murty's least-index rule for linear complementarity
    problems). Where the carrying wheels do not support a moment, the plate gets so steep that the other wheels are
    clear of the floor.

    Args:
        weight: positive [N].
        load_x: first moments of the load about the pole [N m].
        load_y: see load_x.
        wheels: (n,) records: stiffness, positive; point_x and point_y, contact minus pole [m]; carries, work space.
    """
    n = len(wheels)
    for i in range(n):
        wheels[i].carries = 1.0
    l0 = lx = ly = 0.0
    for _ in range(2 ** min(n, 16)):
        total = centre_x = centre_y = reach = 0.0
        for i in range(n):
            spring = wheels[i].carries * wheels[i].stiffness
            total += spring
            centre_x += spring * wheels[i].point_x
            centre_y += spring * wheels[i].point_y
            reach = max(reach, abs(wheels[i].point_x), abs(wheels[i].point_y))
        centre_x /= total
        centre_y /= total
        xx = xy = yy = 0.0
        for i in range(n):
            spring, x, y = (
                wheels[i].carries * wheels[i].stiffness,
                wheels[i].point_x - centre_x,
                wheels[i].point_y - centre_y,
            )
            xx += spring * x * x
            xy += spring * x * y
            yy += spring * y * y
        # Moments about the centre of the carrying wheels, and the part that these cannot support (fall).
        moment_x, moment_y = load_x - weight * centre_x, load_y - weight * centre_y
        size, determinant = xx + yy, xx * yy - xy * xy
        lx = ly = fall_x = fall_y = 0.0
        if determinant > _LINE * size * size and size > _LINE * total * reach * reach:
            lx, ly = (yy * moment_x - xy * moment_y) / determinant, (xx * moment_y - xy * moment_x) / determinant
        else:
            fall_x, fall_y = moment_x, moment_y
            if size > _LINE * total * reach * reach:
                along_x, along_y = (xx, xy) if xx > yy else (xy, yy)
                length = sqrt(along_x * along_x + along_y * along_y)
                along_x, along_y = along_x / length, along_y / length
                held = along_x * moment_x + along_y * moment_y
                lx, ly = held * along_x / size, held * along_y / size
                fall_x, fall_y = moment_x - held * along_x, moment_y - held * along_y
        l0 = weight / total
        wrong, steep = -1, 0.0
        for i in range(n):
            x, y = wheels[i].point_x - centre_x, wheels[i].point_y - centre_y
            height, fall = l0 + lx * x + ly * y, fall_x * x + fall_y * y
            if wheels[i].carries != 0.0:
                misplaced = height < -FELT * l0
            elif abs(fall) > FELT * weight * reach * reach:
                misplaced = fall > 0.0
                steep = max(steep, (height + l0) / -fall)
            else:
                misplaced = height > FELT * l0
            if misplaced:
                wrong = i
                break
        if wrong < 0:
            lx += steep * fall_x
            ly += steep * fall_y
            break
        wheels[wrong].carries = 1.0 - wheels[wrong].carries
    return l0 - lx * centre_x - ly * centre_y, lx, ly
