"""LuGre friction of a joint: a bristle that bends before it slides (Canudas de Wit et al. 1995).

Seed 001 (8)-(16); systems 9-12.

    dz/dt = v - sigma0 |v| z / g(v)
    tau_f = sigma0 z + sigma1 dz/dt + viscous v
    g(v)  = coulomb, or coulomb + (static - coulomb) exp(-(v / stribeck_speed)^2) with a Stribeck curve

tau_f opposes the motion: the joint moves by q'' = M^-1 (tau - bias - tau_f), and it breaks away with the sign of the
speed (the text of seed 001 says sign(q)). The bristle is advanced by the exponential of the travelled path, exact
without a Stribeck curve at any stiffness and step; explicit Euler multiplies errors by 1 - sigma0 |v| dt / g, which
is -9 at 1e5 N m/rad, 0.1 rad/s, 1 N m and 1 ms.

Compiled loops take the functions of `dynamics/lugre/_bristle` and `dynamics/lugre/_bristle` with `LuGre.constants` or
`LuGre.bristle_constants`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Vector, array, number, scalar
from youbot_dynamics.compiled import HAVE_NUMBA
from youbot_dynamics.dynamics.lugre import _bristle as bristle
from youbot_dynamics.dynamics.lugre import _bristle as bristle_step
from youbot_dynamics.errors import InputError, ModelError

Value = TypeVar("Value", float, Vector)


def each(law: Callable[..., float], values: Mapping[str, Value], *constants: float) -> Value:
    """Figure of `law(*values, *constants)` for numbers, or for arrays (n,) of one shape, numbers among them.

    Args:
        law: function of floats that returns a float.
        values: arguments by the name a user knows them by.
        constants: further arguments, the same for all elements.

    Raises:
        InputError: a value is not finite, the shapes differ, or there is no element.
    """
    result: Any = _apply(law, values, constants)
    return result  # type: ignore[no-any-return]


def each_of_many(law: Callable[..., tuple[float, ...]], values: Mapping[str, Value], *constants: float) -> list[Value]:
    """The same as `each` for a law of several figures: one number or array (n,) for each of them."""
    return list(_apply(law, values, constants))


def _apply(law: Callable[..., Any], values: Mapping[str, Any], constants: tuple[float, ...]) -> Any:
    if all(isinstance(value, (float, int)) for value in values.values()):
        for name, value in values.items():
            if not math.isfinite(value):
                raise InputError(name, got=str(value), expected="a finite number", remedy="check where it came from")
        return law(*(float(value) for value in values.values()), *constants)
    found = [array(name, value, (None,) * _dimensions(name, value)) for name, value in values.items()]
    names = " and ".join(values)
    shapes = " and ".join(str(item.shape) for item in found)
    try:
        shape = np.broadcast_shapes(*(item.shape for item in found))
    except ValueError:
        raise InputError(names, got=f"shapes {shapes}", expected="numbers, or arrays of one shape (n,)") from None
    if 0 in shape:
        raise InputError(names, got=f"shapes {shapes}", expected="one element at least")
    columns = (np.broadcast_to(item, shape).ravel().tolist() for item in found)
    figures = np.array([law(*one, *constants) for one in zip(*columns, strict=True)])
    return np.ascontiguousarray(figures.T).reshape(figures.shape[1:] + shape)


def _dimensions(name: str, value: Any) -> int:
    try:
        return np.ndim(value)
    except ValueError:
        raise InputError(
            name, got="rows of different lengths", expected="numbers, or arrays of one shape (n,)"
        ) from None


_LARGEST = 1e50  # constant of a bristle, and one over the smallest


@dataclass(frozen=True)
class Jacobians(Generic[Value]):
    """Slopes of dz/dt and of the torque at one instant: numbers, or arrays (n,).

    Args:
        rate_over_bristle: d z-dot/dz [1/s].
        rate_over_speed: d z-dot/dv [1].
        torque_over_bristle: d tau_f/dz [N m/rad].
        torque_over_speed: d tau_f/dv [N m s/rad].
    """

    rate_over_bristle: Value
    rate_over_speed: Value
    torque_over_bristle: Value
    torque_over_speed: Value


@dataclass(frozen=True)
class Step(Generic[Value]):
    """A finite step of the bristle with its slopes: numbers, or arrays (n,).

    Args:
        bristle: z after the step [rad].
        over_bristle: dz/dz at the start [1].
        over_start_speed: dz/dv_start [s].
        over_end_speed: dz/dv_end [s].
    """

    bristle: Value
    over_bristle: Value
    over_start_speed: Value
    over_end_speed: Value


def coulomb_under_load(coulomb: float, load_coefficient: float, gear_torque: Value) -> Value:
    """Friction level [N m] of a gear that transmits a torque [N m], coulomb + load_coefficient |gear_torque|."""
    return coulomb + load_coefficient * abs(gear_torque)


@dataclass(frozen=True)
class LuGre:
    """Friction of one joint; every method takes numbers, or arrays (n,) of joints or samples with this friction.

    Args:
        coulomb: friction torque g of fast sliding [N m], c0 of seed 001.
        viscous: torque a speed [N m s/rad], c1.
        sigma0: stiffness of the bristle [N m/rad].
        sigma1: damping of the bristle [N m s/rad].
        static: friction level at standstill [N m]; with a Stribeck curve only.
        stribeck_speed: speed [rad/s] at which (static - coulomb) / e of the curve is left; with `static` only.

    Raises:
        ModelError: coulomb, sigma0 or stribeck_speed not positive, viscous or sigma1 negative, static below coulomb,
            one of static and stribeck_speed without the other, or viscous below sigma1 (static - coulomb) / coulomb:
            such friction would supply energy (system 10). Or a constant of the bristle too small or too large to
            reckon with.

    Example:
        >>> friction = yd.LuGre(coulomb=0.5, viscous=0.1, sigma0=500.0, sigma1=1.0)
        >>> bristle = friction.advance(0.0, 0.2, 0.2, 0.1)  # after 0.1 s at 0.2 rad/s it slides
        >>> round(float(friction.torque(bristle, 0.2)), 3)
        0.52
    """

    coulomb: float
    viscous: float
    sigma0: float
    sigma1: float
    static: float | None = None
    stribeck_speed: float | None = None
    constants: tuple[float, float, float, float, float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the parameters and keep them as numbers, and as the compiled functions take them."""
        coulomb = number("LuGre coulomb", self.coulomb, "N m", above=0.0)
        viscous = number("LuGre viscous", self.viscous, "N m s/rad", low=0.0)
        sigma0 = number("LuGre sigma0", self.sigma0, "N m/rad", above=0.0)
        sigma1 = number("LuGre sigma1", self.sigma1, "N m s/rad", low=0.0)
        if (self.static is None) != (self.stribeck_speed is None):
            missing, given = ("static", "stribeck_speed") if self.static is None else ("stribeck_speed", "static")
            raise ModelError(f"LuGre {missing}", got="none", expected=f"a number, since {given} is given")
        static, stribeck_speed = coulomb, 1.0
        if self.static is not None and self.stribeck_speed is not None:
            static = number("LuGre static", self.static, "N m", low=coulomb)
            stribeck_speed = number("LuGre stribeck_speed", self.stribeck_speed, "rad/s", above=0.0)
        needed = sigma1 * (static - coulomb) / coulomb
        if viscous < needed:
            raise ModelError(
                "LuGre viscous",
                got=f"{viscous:.10g}",
                expected=f"at least sigma1 (static - coulomb) / coulomb = {needed:.10g} [N m s/rad]",
                remedy="lower sigma1 or static: this friction would supply energy",
            )
        checked = {"coulomb": coulomb, "viscous": viscous, "sigma0": sigma0, "sigma1": sigma1}
        if self.static is not None:
            checked.update(static=static, stribeck_speed=stribeck_speed)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "constants", (coulomb, viscous, sigma0, sigma1, static, stribeck_speed))
        for name, value in zip(("coulomb", "sigma0", "static", "stribeck_speed"), self.bristle_constants, strict=True):
            if not 1.0 / _LARGEST <= value <= _LARGEST:
                expected = f"a number from {1.0 / _LARGEST:g} to {_LARGEST:g}, whose products are finite"
                raise ModelError(f"LuGre {name}", got=f"{value:g}", expected=expected)

    def under_load(self, load_coefficient: float, gear_torque: float) -> LuGre:
        """This friction while its gear transmits a torque [N m]: both levels grow by load_coefficient |gear_torque|.

        Raises:
            ModelError: a negative coefficient, or numbers that are not finite.
        """
        share = number("load_coefficient", load_coefficient, "1", low=0.0)
        torque = number("gear_torque", gear_torque, "N m")
        static = None if self.static is None else coulomb_under_load(self.static, share, torque)
        return replace(self, coulomb=coulomb_under_load(self.coulomb, share, torque), static=static)

    @property
    def bristle_constants(self) -> tuple[float, float, float, float]:
        """(coulomb, sigma0, static, stribeck_speed) in the order of the compiled functions of the bristle."""
        coulomb, _, sigma0, _, static, stribeck_speed = self.constants
        return coulomb, sigma0, static, stribeck_speed

    @property
    def breakaway_torque(self) -> float:
        """Torque [N m] up to which the joint holds: static, or coulomb without a Stribeck curve (system 12)."""
        return self.constants[4]

    @property
    def reach(self) -> float:
        """Largest deflection [rad] of a bristle in motion, breakaway torque / sigma0; `advance` never leaves it."""
        return self.breakaway_torque / self.constants[2]

    def clamp(self, z: Value) -> Value:
        """Bristle (n,) [rad] brought into |z| <= reach, outside which friction can supply energy (system 10).

        An estimator needs it after each correction; `advance` keeps the set by itself.

        Raises:
            InputError: z is not finite.
        """
        _, sigma0, static, _ = self.bristle_constants
        return each(bristle.clamp_bristle, {"z": z}, sigma0, static)

    def level(self, v: Value) -> Value:
        """Friction level g(v) (n,) [N m] of steady sliding.

        Raises:
            InputError: v is not finite.
        """
        coulomb, _, static, stribeck_speed = self.bristle_constants
        return each(bristle.friction_level, {"v": v}, coulomb, static, stribeck_speed)

    def rate(self, z: Value, v: Value) -> Value:
        """dz/dt (n,) [rad/s] = v - sigma0 |v| z / g(v) (seed 001 (9)).

        Raises:
            InputError: an argument is not finite, or their shapes differ.
        """
        return each(bristle.sliding_rate, {"z": z, "v": v}, *self.bristle_constants)

    def torque(self, z: Value, v: Value) -> Value:
        """Friction torque (n,) [N m], sigma0 z + sigma1 dz/dt + viscous v (seed 001 (9)); it opposes the motion.

        Raises:
            InputError: an argument is not finite, or their shapes differ.
        """
        return each(bristle.friction_torque, {"z": z, "v": v}, *self.constants)

    def steady_torque(self, v: Value) -> Value:
        """Torque (n,) [N m] after long sliding at v, sign(v) g(v) + viscous v (seed 001 (16)); 0 at v = 0.

        At v = 0 this is one value of many: the joint then holds any torque up to `breakaway_torque` (system 12).

        Raises:
            InputError: v is not finite.
        """
        coulomb, viscous, _, _, static, stribeck_speed = self.constants
        return each(bristle.sliding_torque, {"v": v}, coulomb, viscous, static, stribeck_speed)

    def steady_bristle(self, v: Value) -> Value:
        """Bristle (n,) [rad] after long sliding at v, sign(v) g(v) / sigma0 (seed 001 (15)); 0 at v = 0.

        Raises:
            InputError: v is not finite.
        """
        return each(bristle.sliding_bristle, {"v": v}, *self.bristle_constants)

    def holding_bristle(self, torque: Value) -> Value:
        """Bristle (n,) [rad] that holds a torque [N m] at standstill, torque / sigma0 (system 12).

        At v = 0 every |z| <= reach is an equilibrium; seed 001 (15) knows only z = 0 there.

        Raises:
            InputError: |torque| exceeds `breakaway_torque`, or is not finite.
        """
        held = each(_deflection, {"torque": torque}, self.constants[2])
        if np.max(np.abs(held)) > self.reach:
            largest = np.max(np.abs(torque))
            raise InputError("torque", got=f"{largest:g}", expected=f"at most {self.breakaway_torque:g} [N m] to hold")
        return held

    def jacobians(self, z: Value, v: Value) -> Jacobians[Value]:
        """Slopes of dz/dt and of the torque at (z, v), each (n,), with sign(0) = 0 (seed 001 (12), (13); D-001-3).

        The printed left sides of (12) are those of z; they are the slopes of dz/dt. At v = 0 the torque is continuous
        but has a kink: its one-sided slopes differ by 2 sigma1 sigma0 |z| / g, and their mean is returned.

        Raises:
            InputError: an argument is not finite, or their shapes differ.
        """
        values = {"z": z, "v": v}
        rate = each_of_many(bristle.sliding_rate_slopes, values, *self.bristle_constants)
        return Jacobians(*rate, *each_of_many(bristle.friction_torque_slopes, values, *self.constants))

    def dissipation(self, z: Value, v: Value) -> Value:
        """Power (n,) [W] turned into heat, v tau_f - d/dt (sigma0 z^2 / 2); >= 0 where |z| <= reach (system 10).

        Raises:
            InputError: an argument is not finite, or their shapes differ.
        """
        return each(bristle.dissipated_power, {"z": z, "v": v}, *self.constants)

    def advance(self, z: Value, v_start: Value, v_end: Value, dt: float) -> Value:
        """Bristle (n,) [rad] after dt [s] of a speed that changes linearly, reversal inside it included.

        Exact without a Stribeck curve; with one off by at most 1e-3 (static - coulomb) [N m] (system 9).

        Raises:
            InputError: an argument is not finite, dt is negative, or the shapes differ.
        """
        values = {"z": z, "v_start": v_start, "v_end": v_end}
        return each(bristle_step.advance_bristle, values, _duration(dt), *self.bristle_constants)

    def advance_jacobians(self, z: Value, v_start: Value, v_end: Value, dt: float) -> Step[Value]:
        """Bristle after the step of `advance` with its slopes over z, v_start and v_end, each (n,).

        What an estimator propagates its covariance with: 1 + (d z-dot/dz) dt is unstable at 1 ms.

        Raises:
            InputError: an argument is not finite, dt is negative, or the shapes differ.
        """
        values = {"z": z, "v_start": v_start, "v_end": v_end}
        return Step(*each_of_many(bristle_step.advance_with_slopes, values, _duration(dt), *self.bristle_constants))

    def advance_path(self, z: Value, displacement: Value, speed: float | None = None) -> Value:
        """Bristle (n,) [rad] after a one-way displacement [rad], whatever the time it took (system 9).

        z+ = z + (sign g / sigma0 - z) (1 - exp(-sigma0 |displacement| / g)), exact for constant g.

        Args:
            z: bristle before [rad].
            displacement: signed path without reversal [rad].
            speed: speed [rad/s] at which a Stribeck curve is held; without one it plays no part.

        Raises:
            InputError: an argument is not finite, the shapes differ, or there is a Stribeck curve and no speed.
        """
        if speed is None:
            self._refuse_stribeck("advance_path without a speed", "give the speed, or use advance")
        reach = self.level(0.0 if speed is None else scalar("speed", speed)) / self.constants[2]
        return each(bristle_step.slide, {"z": z, "displacement": displacement}, reach)

    def follow_speeds(self, z: float, speeds: ArrayLike, dt: ArrayLike) -> Vector:
        """Bristle at every sample of a speed log, z first: (n,) [rad].

        Args:
            z: bristle at the first sample [rad].
            speeds: (n,) speeds [rad/s], linear between samples.
            dt: time between samples [s], one number or (n - 1,).

        Raises:
            InputError: an argument is not finite, a dt is negative, a shape is wrong, or there is no sample.
        """
        log = _samples("speeds", speeds)
        if np.isscalar(dt):
            steps = np.full(len(log) - 1, _duration(dt))  # type: ignore[arg-type]
        else:
            steps = array("dt", dt, (len(log) - 1,))
            if (steps < 0.0).any():
                raise InputError("dt", got=f"{steps.min():g}", expected="times of at least 0 [s]")
        out = np.empty(len(log))
        bristle_step.follow_speeds(scalar("z", z), _fast(log), _fast(steps), *self.bristle_constants, out)
        return out

    def follow_positions(self, z: float, positions: ArrayLike) -> Vector:
        """Bristle at every sample of a position log, z first: (n,) [rad]; exact, whatever the speed in between.

        A reversal between two samples cannot be seen in positions; where speeds are known, `follow_speeds` splits it.

        Args:
            z: bristle at the first sample [rad].
            positions: (n,) joint positions [rad], monotone between samples.

        Raises:
            InputError: an argument is not finite, a shape is wrong, there is no sample, or a Stribeck curve.
        """
        self._refuse_stribeck("follow_positions", "use follow_speeds")
        log = _samples("positions", positions)
        out = np.empty(len(log))
        bristle_step.follow_positions(scalar("z", z), _fast(log), self.reach, out)
        return out

    def _refuse_stribeck(self, thing: str, remedy: str) -> None:
        coulomb, _, static, _ = self.bristle_constants
        if static != coulomb:
            raise InputError(thing, got="a Stribeck curve", expected="constant friction level", remedy=remedy)


def micro_damping(damping_ratio: float, inertia: float, sigma0: float, viscous: float) -> float:
    """Damping sigma1 [N m s/rad] that gives a sticking joint a damping ratio, 2 ratio sqrt(sigma0 J) - viscous.

    At rest the joint swings on its bristle as J q'' + (sigma1 + viscous) q' + sigma0 q = 0 (system 10).

    Args:
        damping_ratio: wanted ratio, 1 for critical damping.
        inertia: J of the joint with its rotor [kg m2].
        sigma0: stiffness of the bristle [N m/rad].
        viscous: viscous friction [N m s/rad].

    Raises:
        ModelError: an argument out of range, or viscous friction alone damps more than that.
    """
    ratio = number("damping_ratio", damping_ratio, low=0.0)
    stiffness = number("LuGre sigma0", sigma0, "N m/rad", above=0.0)
    critical = 2.0 * math.sqrt(stiffness * number("inertia", inertia, "kg m2", above=0.0))
    viscous = number("LuGre viscous", viscous, "N m s/rad", low=0.0)
    if ratio * critical < viscous:
        alone = viscous / critical
        raise ModelError("damping_ratio", got=f"{ratio:g}", expected=f"at least {alone:g}, that of viscous alone")
    return ratio * critical - viscous


def _deflection(torque: float, sigma0: float) -> float:
    return torque / sigma0


def _samples(name: str, values: ArrayLike) -> Vector:
    log = array(name, values, (None,))
    if not len(log):
        raise InputError(name, got="no sample", expected="one at least")
    return log


def _duration(dt: float) -> float:
    if not (isinstance(dt, (float, int)) and math.isfinite(dt) and dt >= 0.0):
        raise InputError("dt", got=str(dt), expected="a finite time of at least 0 [s]")
    return float(dt)


def _fast(log: Vector) -> Any:
    """The form plain Python loops over fastest, where they are not compiled."""
    return log if HAVE_NUMBA else log.tolist()
