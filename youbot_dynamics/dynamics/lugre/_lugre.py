"""LuGre friction of a joint: a bristle that deflects before it slides.

    dz/dt = v - sigma0 |v| z / g(v)
    tau_f = sigma0 z + sigma1 dz/dt + viscous v
    g(v)  = coulomb, or coulomb + (static - coulomb) exp(-(v / stribeck_speed)^2) with a Stribeck curve

tau_f opposes the motion: the joint moves by q'' = M^-1 (tau - bias - tau_f) and breaks away with the sign of the speed
(the text of document 001 says sign(q)). The bristle is advanced by the exponential of the travelled path. Without a
Stribeck curve this is exact at any stiffness and step. Explicit Euler multiplies errors by 1 - sigma0 |v| dt / g, which
is -9 at 1e5 N m/rad, 0.1 rad/s, 1 N m and 1 ms.

Compiled loops call the functions of `dynamics/lugre/_bristle` with `LuGre.constants`.
Source: Canudas de Wit et al. 1995; document 001 (8)-(16), systems 9-12.
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
from youbot_dynamics.errors import InputError, ModelError

Value = TypeVar("Value", float, Vector)


def each(law: Callable[..., float], values: Mapping[str, Value], *constants: Any) -> Value:
    """Result of `law(*values, *constants)` for numbers, or for arrays (n,) of one shape, or both.

    Args:
        law: function of floats that returns a float.
        values: arguments by their public names.
        constants: further arguments, the same for all elements.

    Raises:
        InputError: a value is not finite, the shapes differ, or there is no element.
    """
    result: Any = _apply(law, values, *constants)
    return result  # type: ignore[no-any-return]


def _apply(law: Callable[..., Any], values: Mapping[str, Any], *constants: Any) -> Any:
    """As `each`; a law of several results gives one number or array (n,) for each of them."""
    if all(isinstance(value, (float, int)) for value in values.values()):
        return law(*(scalar(name, value) for name, value in values.items()), *constants)
    arrays = [array(name, value, (None,) * _dimensions(name, value)) for name, value in values.items()]
    names = " and ".join(values)
    shapes = " and ".join(str(item.shape) for item in arrays)
    try:
        shape = np.broadcast_shapes(*(item.shape for item in arrays))
    except ValueError:
        raise InputError(names, got=f"shapes {shapes}", expected="numbers, or arrays of one shape (n,)") from None
    if 0 in shape:
        raise InputError(names, got=f"shapes {shapes}", expected="one element at least")
    columns = (np.broadcast_to(item, shape).ravel().tolist() for item in arrays)
    figures = np.array([law(*arguments, *constants) for arguments in zip(*columns, strict=True)])
    return np.ascontiguousarray(figures.T).reshape(figures.shape[1:] + shape)


def _dimensions(name: str, value: Any) -> int:
    try:
        return np.ndim(value)
    except ValueError:
        raise InputError(
            name, got="rows of different lengths", expected="numbers, or arrays of one shape (n,)"
        ) from None


_LARGEST = 1e50  # upper bound of a bristle constant; its reciprocal is the lower bound


@dataclass(frozen=True)
class Jacobians(Generic[Value]):
    """Derivatives of dz/dt and of the torque at one instant: numbers, or arrays (n,)."""

    rate_over_bristle: Value  # d z-dot/dz [1/s]
    rate_over_speed: Value  # d z-dot/dv [1]
    torque_over_bristle: Value  # d tau_f/dz [N m/rad]
    torque_over_speed: Value  # d tau_f/dv [N m s/rad]


@dataclass(frozen=True)
class Step(Generic[Value]):
    """A finite step of the bristle with its derivatives: numbers, or arrays (n,)."""

    bristle: Value  # z after the step [rad]
    over_bristle: Value  # dz/dz at the start [1]
    over_start_speed: Value  # dz/dv_start [s]
    over_end_speed: Value  # dz/dv_end [s]


def coulomb_under_load(coulomb: float, load_coefficient: float, gear_torque: Value) -> Value:
    """Friction level [N m] of a gear that transmits a torque [N m], coulomb + load_coefficient |gear_torque|."""
    return coulomb + load_coefficient * abs(gear_torque)


@dataclass(frozen=True)
class LuGre:
    """Friction of one joint. Every method takes numbers, or arrays (n,) of joints or samples.

    All methods raise InputError for an argument that is not finite, a negative dt, or arrays of different shapes.

    Args:
        coulomb: friction torque g of fast sliding [N m], c0 of document 001.
        viscous: viscous friction coefficient [N m s/rad], c1 of document 001.
        sigma0: stiffness of the bristle [N m/rad].
        sigma1: damping of the bristle [N m s/rad].
        static: friction level at standstill [N m]; only with a Stribeck curve.
        stribeck_speed: speed [rad/s] at which g exceeds coulomb by (static - coulomb) / e; only with `static`.

    Raises:
        ModelError: coulomb, sigma0 or stribeck_speed not positive, viscous or sigma1 negative, static below coulomb,
            one of static and stribeck_speed without the other, viscous below sigma1 (static - coulomb) / coulomb (such
            friction would supply energy), or a constant of the bristle too small or too large for floating-point
            numbers.

    Example:
        >>> friction = yd.LuGre(coulomb=0.5, viscous=0.1, sigma0=500.0, sigma1=1.0)
        >>> bristle = friction.advance(0.0, 0.2, 0.2, 0.1)  # after 0.1 s at 0.2 rad/s it slides
        >>> round(float(friction.torque(bristle, 0.2)), 3)
        0.52

    Source: Canudas de Wit et al. 1995; document 001 (9), systems 9, 10.
    """

    coulomb: float
    viscous: float
    sigma0: float
    sigma1: float
    static: float | None = None
    stribeck_speed: float | None = None
    constants: bristle.Constants = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the parameters, convert them to numbers and prepare them for the compiled functions."""
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
        if not viscous >= needed:
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
        bounded = {"coulomb": coulomb, "sigma0": sigma0, "static": static, "stribeck_speed": stribeck_speed}
        for name, value in bounded.items():
            if not 1.0 / _LARGEST <= value <= _LARGEST:
                expected = f"a number from {1.0 / _LARGEST:g} to {_LARGEST:g}, whose products are finite"
                raise ModelError(f"LuGre {name}", got=f"{value:g}", expected=expected)

    def under_load(self, load_coefficient: float, gear_torque: float) -> LuGre:
        """Friction while the gear transmits a torque [N m]: both levels increase by load_coefficient |gear_torque|.

        Raises:
            ModelError: a negative coefficient, or numbers that are not finite.
        """
        share = number("load_coefficient", load_coefficient, "1", low=0.0)
        torque = number("gear_torque", gear_torque, "N m")
        static = None if self.static is None else coulomb_under_load(self.static, share, torque)
        return replace(self, coulomb=coulomb_under_load(self.coulomb, share, torque), static=static)

    @property
    def breakaway_torque(self) -> float:
        """Largest torque [N m] that holds the joint: static, or coulomb without a Stribeck curve. Source: system 12."""
        return self.constants[4]

    @property
    def reach(self) -> float:
        """Largest deflection [rad] of a moving bristle, breakaway torque / sigma0; `advance` never exceeds it."""
        return self.breakaway_torque / self.constants[2]

    def clamp(self, z: Value) -> Value:
        """Bristle (n,) [rad] clamped to |z| <= reach; beyond it friction can supply energy.

        An estimator needs this after each correction. `advance` never leaves the set.

        Source: system 10.
        """
        return each(bristle.clamp_bristle, {"z": z}, self.constants)

    def level(self, v: Value) -> Value:
        """Friction level g(v) (n,) [N m] of steady sliding."""
        return each(bristle.friction_level, {"v": v}, self.constants)

    def rate(self, z: Value, v: Value) -> Value:
        """dz/dt (n,) [rad/s] = v - sigma0 |v| z / g(v).

        Source: document 001 (9).
        """
        return each(bristle.sliding_rate, {"z": z, "v": v}, self.constants)

    def torque(self, z: Value, v: Value) -> Value:
        """Friction torque (n,) [N m], sigma0 z + sigma1 dz/dt + viscous v; it opposes the motion.

        Source: document 001 (9).
        """
        return each(bristle.friction_torque, {"z": z, "v": v}, self.constants)

    def steady_torque(self, v: Value) -> Value:
        """Torque (n,) [N m] after long sliding at v, sign(v) g(v) + viscous v; 0 at v = 0.

        At v = 0 this is one value of many: the joint then holds any torque up to `breakaway_torque`.

        Source: document 001 (16), system 12.
        """
        return each(bristle.sliding_torque, {"v": v}, self.constants)

    def steady_bristle(self, v: Value) -> Value:
        """Bristle (n,) [rad] after long sliding at v, sign(v) g(v) / sigma0; 0 at v = 0.

        Source: document 001 (15).
        """
        return each(bristle.sliding_bristle, {"v": v}, self.constants)

    def holding_bristle(self, torque: Value) -> Value:
        """Bristle (n,) [rad] that holds a torque [N m] at standstill, torque / sigma0.

        At v = 0 every |z| <= reach is an equilibrium; document 001 (15) gives only z = 0.

        Raises:
            InputError: |torque| exceeds `breakaway_torque`, or is not finite.

        Source: system 12.
        """
        held = each(lambda tau: tau / self.constants[2], {"torque": torque})
        if not np.max(np.abs(held)) <= self.reach:
            largest = np.max(np.abs(torque))
            raise InputError("torque", got=f"{largest:g}", expected=f"at most {self.breakaway_torque:g} [N m] to hold")
        return held

    def jacobians(self, z: Value, v: Value) -> Jacobians[Value]:
        """Derivatives of dz/dt and of the torque at (z, v), each (n,), with sign(0) = 0.

        Document 001 (12) prints dz on the left sides; they are the derivatives of dz/dt. At v = 0 the torque is
        continuous but has a kink: its one-sided derivatives differ by 2 sigma1 sigma0 |z| / g, and their mean is
        returned.

        Source: document 001 (12), (13); D-001-3.
        """
        values = {"z": z, "v": v}
        rate = _apply(bristle.sliding_rate_slopes, values, self.constants)
        return Jacobians(*rate, *_apply(bristle.friction_torque_slopes, values, self.constants))

    def dissipation(self, z: Value, v: Value) -> Value:
        """Dissipated power (n,) [W], v tau_f - d/dt (sigma0 z^2 / 2); at least 0 for |z| <= reach.

        Source: system 10.
        """
        return each(bristle.dissipated_power, {"z": z, "v": v}, self.constants)

    def advance(self, z: Value, v_start: Value, v_end: Value, dt: float) -> Value:
        """Bristle (n,) [rad] after dt [s] of a linearly changing speed, which may reverse.

        Exact without a Stribeck curve; with one the error is at most 1e-3 (static - coulomb) [N m].

        Source: system 9.
        """
        values = {"z": z, "v_start": v_start, "v_end": v_end}
        return each(bristle.advance_bristle, values, _duration(dt), self.constants)

    def advance_jacobians(self, z: Value, v_start: Value, v_end: Value, dt: float) -> Step[Value]:
        """Bristle after the step of `advance` with its derivatives by z, v_start and v_end, each (n,).

        An estimator propagates its covariance with them; 1 + (d z-dot/dz) dt is unstable at 1 ms.
        """
        values = {"z": z, "v_start": v_start, "v_end": v_end}
        return Step(*_apply(bristle.advance_with_slopes, values, _duration(dt), self.constants))

    def advance_path(self, z: Value, displacement: Value, speed: float | None = None) -> Value:
        """Bristle (n,) [rad] after a displacement [rad] without reversal, in any time.

        z+ = z + (sign g / sigma0 - z) (1 - exp(-sigma0 |displacement| / g)), exact for constant g.

        Args:
            z: bristle at the start [rad].
            displacement: signed path without reversal [rad].
            speed: constant speed [rad/s] for a Stribeck curve; otherwise without effect.

        Raises:
            InputError: an argument is not finite, the shapes differ, or there is a Stribeck curve and no speed.

        Source: system 9.
        """
        if speed is None:
            self._refuse_stribeck("advance_path without a speed", "give the speed, or use advance")
        reach = self.level(0.0 if speed is None else scalar("speed", speed)) / self.constants[2]
        return each(bristle.slide, {"z": z, "displacement": displacement}, reach)

    def follow_speeds(self, z: float, speeds: ArrayLike, dt: ArrayLike) -> Vector:
        """Bristle at every sample of a speed log: (n,) [rad], the first is z.

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
        bristle.follow_speeds(scalar("z", z), _fast(log), _fast(steps), self.constants, out)
        return out

    def follow_positions(self, z: float, positions: ArrayLike) -> Vector:
        """Bristle at every sample of a position log: (n,) [rad], the first is z; exact for any speed in between.

        Positions do not show a reversal between two samples. If the speeds are known, `follow_speeds` splits at it.

        Args:
            z: bristle at the first sample [rad].
            positions: (n,) joint positions [rad], monotone between samples.

        Raises:
            InputError: an argument is not finite, a shape is wrong, there is no sample, or there is a Stribeck curve.
        """
        self._refuse_stribeck("follow_positions", "use follow_speeds")
        log = _samples("positions", positions)
        out = np.empty(len(log))
        bristle.follow_positions(scalar("z", z), _fast(log), self.reach, out)
        return out

    def _refuse_stribeck(self, thing: str, remedy: str) -> None:
        if self.breakaway_torque != self.coulomb:
            raise InputError(thing, got="a Stribeck curve", expected="constant friction level", remedy=remedy)


def micro_damping(damping_ratio: float, inertia: float, sigma0: float, viscous: float) -> float:
    """Damping sigma1 [N m s/rad] for a damping ratio of a sticking joint, 2 ratio sqrt(sigma0 J) - viscous.

    At rest the joint oscillates on its bristle as J q'' + (sigma1 + viscous) q' + sigma0 q = 0.

    Args:
        damping_ratio: desired ratio, 1 for critical damping.
        inertia: J of the joint with its rotor [kg m2].
        sigma0: stiffness of the bristle [N m/rad].
        viscous: viscous friction [N m s/rad].

    Raises:
        ModelError: an argument out of range, or viscous friction alone exceeds that damping.

    Source: system 10.
    """
    ratio = number("damping_ratio", damping_ratio, low=0.0)
    stiffness = number("LuGre sigma0", sigma0, "N m/rad", above=0.0)
    critical = 2.0 * math.sqrt(stiffness * number("inertia", inertia, "kg m2", above=0.0))
    viscous = number("LuGre viscous", viscous, "N m s/rad", low=0.0)
    if not viscous <= ratio * critical < math.inf:
        alone = viscous / critical
        raise ModelError("damping_ratio", got=f"{ratio:g}", expected=f"at least {alone:g}, that of viscous alone")
    return ratio * critical - viscous


def _samples(name: str, values: ArrayLike) -> Vector:
    log = array(name, values, (None,))
    if not len(log):
        raise InputError(name, got="no sample", expected="at least one")
    return log


def _duration(dt: float) -> float:
    if (span := scalar("dt", dt)) < 0.0:
        raise InputError("dt", got=f"{span:g}", expected="a finite time of at least 0 [s]")
    return span


def _fast(log: Vector) -> Any:
    """Return the log in the type that Python loops over fastest when numba is missing."""
    return log if HAVE_NUMBA else log.tolist()
