"""Accelerations and forces at one state of a rigid planar base on n wheels, each rolling or sliding.

Source: document 004, systems 42-56.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import Flags, MadeOfArguments, Vector, array, excerpt, number, read_only
from youbot_dynamics.dynamics.normal_forces import plate_of
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.source_systems.wheeled_base._contact import BaseState, Wheel, contacts, wheel_torques
from youbot_dynamics.source_systems.wheeled_base._regimes import (
    BaseEquations,
    RegimeSolution,
    on_pressed_wheels,
    solve_cones,
    solve_regimes,
)


class Support:
    """What follows from the normal forces of wheels and from which of them have lifted."""

    normal_forces: Vector
    lifted: Flags

    @property
    def tips_over(self) -> bool:
        """True if a wheel has lifted.

        Three wheels that span an area still balance the load. On fewer the base tips over. The body is kept level, so
        a motion or step is then valid only for the first moment.
        """
        return bool(np.any(self.lifted))

    @property
    def smallest_normal_force(self) -> float:
        """Margin against tipping over [N]; 0 once a wheel has lifted."""
        return float(np.min(self.normal_forces))


@dataclass(frozen=True, eq=False)
class BaseMotion(Support):
    """Accelerations of the base and the forces that cause them."""

    twist_rate: Vector  # (3,) derivative of the body twist [m/s2, m/s2, rad/s2]
    wheel_accelerations: Vector  # (n,) Omega' [rad/s2]
    steering_accelerations: Vector  # (n,) derivative of the steering rate, relative to the body [rad/s2]
    tangential_forces: Vector  # (n, 2) friction of the floor on each wheel, body axes [N]
    normal_forces: Vector  # (n,) of the floor, never negative [N]
    lifted: Flags  # (n,) True for a wheel that has left the floor: only a downward pull would hold it there
    steering_torques: Vector  # (n,) the given one for a steered wheel, else the reaction M_C of the mount [N m]
    rolling: Flags  # (n,) True for a wheel that does not slip
    rank: int  # number of independent rolling constraints
    constraints: int  # number of rolling constraints; if it exceeds `rank`, some forces are not determined
    residual: float  # largest required rolling acceleration that no motion gives [m/s2]; 0 for consistent constraints

    @property
    def forces_unique(self) -> bool:
        """False if other friction forces would give the same motion; the motion is always unique."""
        return self.rank == self.constraints


@dataclass(frozen=True, eq=False)
class WheeledBase(MadeOfArguments):
    """Body and wheels. The origin of the body frame is the centre of the base; z = 0 is the floor.

    Args:
        wheels: at least three, not all on one line.
        mass: total mass m [kg].
        yaw_inertia: J_R about the vertical through the centre of mass, without the steering inertias [kg m2].
        centre_of_mass: (3,) from the centre; the height is the last element [m].
        product_xz: element J_xz = -int x z dm of the inertia tensor about the centre of mass [kg m2].
        product_yz: element J_yz = -int y z dm [kg m2].
        gravity: [m/s2].

    Raises:
        ModelError: a value that no real base has.
        InputError: a centre of mass of the wrong shape, one or two wheels, or wheels on one line.

    Example:
        >>> places = [(0.2, 0.1), (-0.2, 0.1), (0.0, -0.1)]
        >>> wheels = tuple(yd.Wheel(f"wheel {k}", "fixed", place, 0.05, 0.01, 0.8) for k, place in enumerate(places))
        >>> cart = yd.WheeledBase(wheels, mass=10.0, yaw_inertia=0.5, centre_of_mass=[0.0, 0.0, 0.1])
        >>> now = cart.motion(cart.rolling_state([0.1, 0.0, 0.0]), [0.1, 0.1, 0.2])  # torques [N m]
        >>> round(float(now.twist_rate[0]), 3)
        0.364

    Source: document 004 (1)-(8), system 42.
    """

    wheels: tuple[Wheel, ...]
    mass: float
    yaw_inertia: float
    centre_of_mass: Vector
    product_xz: float = 0.0
    product_yz: float = 0.0
    gravity: float = 9.81

    def __post_init__(self) -> None:
        """Check each quantity."""
        set_ = object.__setattr__
        wheels = tuple(self.wheels) if isinstance(self.wheels, Iterable) else ()
        if not (wheels and all(isinstance(wheel, Wheel) for wheel in wheels)):
            raise ModelError("wheels", got=excerpt(self.wheels), expected="a sequence of Wheel")
        set_(self, "wheels", wheels)
        names = [wheel.name for wheel in self.wheels]
        if len(set(names)) < len(names):
            raise ModelError("wheels", got=f"names {', '.join(names)}", expected="a different name for each")
        set_(self, "mass", number("mass of the base", self.mass, "kg", above=0.0))
        set_(self, "yaw_inertia", number("yaw_inertia of the base", self.yaw_inertia, "kg m2", above=0.0))
        set_(self, "centre_of_mass", read_only(array("centre_of_mass", self.centre_of_mass, (3,)).copy()))
        number("height of the centre of mass", self.centre_of_mass[2], "m", low=0.0)
        set_(self, "product_xz", number("product_xz of the base", self.product_xz, "kg m2"))
        set_(self, "product_yz", number("product_yz of the base", self.product_yz, "kg m2"))
        set_(self, "gravity", number("gravity", self.gravity, "m/s2", above=0.0))
        steering_axes = np.array([wheel.position for wheel in self.wheels]).reshape(-1, 2)
        plate_of(steering_axes, np.ones(len(self.wheels)), (0.0, 0.0))

    @property
    def steerable(self) -> list[int]:
        """Indices of the wheels that steer."""
        return [i for i, wheel in enumerate(self.wheels) if wheel.steerable]

    def rolling_state(
        self, twist: ArrayLike, steering_angles: ArrayLike | None = None, pose: ArrayLike | None = None
    ) -> BaseState:
        """State in which no wheel slips along its rolling direction (a mecanum wheel: its roller axis).

        A caster swings at the rate of a passive one, alpha' = v_C . t / e. The lateral slip of the other wheels follows
        from the twist and the steering angles.

        Args:
            twist: (3,) body twist [m/s, m/s, rad/s].
            steering_angles: (n,) [rad], default 0.
            pose: (3,) default 0.

        Raises:
            InputError: wrong shapes, NaN, or a steering angle of a wheel without steering.

        Source: system 44.
        """
        n = len(self.wheels)
        standing = BaseState(array("twist", twist, (3,)), np.zeros(n), steering_angles, None, pose)  # type: ignore[arg-type]
        still = contacts(self.wheels, standing)
        speeds, rates = np.zeros(n), np.zeros(n)
        vx, vy, yaw_rate = standing.twist
        for i, wheel in enumerate(self.wheels):
            row = np.searchsorted(still.owner, i)
            speeds[i] = still.velocities[row] / (wheel.radius * float(still.directions[row] @ still.headings[i]))
            if wheel.kind == "caster":
                x, y = wheel.position
                nx, ny = still.headings[i]
                rates[i] = (-ny * (vx - yaw_rate * y) + nx * (vy + yaw_rate * x)) / wheel.offset - yaw_rate
        return BaseState(standing.twist, speeds, standing.steering_angles, rates, standing.pose)

    def energy(self, state: BaseState) -> float:
        """Kinetic energy m v_T^2/2 + J_R omega^2/2 + sum J_C alpha'^2/2 + sum J_W Omega^2/2 [J]."""
        alpha_rates = contacts(self.wheels, state).turning
        vx, vy, yaw_rate = state.twist
        x, y, _ = self.centre_of_mass
        energy = self.mass * ((vx - yaw_rate * y) ** 2 + (vy + yaw_rate * x) ** 2) + self.yaw_inertia * yaw_rate**2
        for wheel, spin, turn in zip(self.wheels, state.wheel_speeds, alpha_rates, strict=True):
            energy += wheel.spin_inertia * spin**2 + wheel.steering_inertia * turn**2
        return 0.5 * float(energy)

    def equations(
        self, state: BaseState, torques: ArrayLike, steering_torques: ArrayLike | None = None
    ) -> BaseEquations:
        """Newton-Euler equations of the base with all unknowns but the friction forces eliminated.

        (1), (2) m (v_0' + omega' z x c - omega^2 c) = sum T_i.
        (3) sum N = m g. (4), (5) equal the change of the horizontal angular momentum, not 0 as printed:
        sum J_W (Omega' t - Omega alpha' n) + omega' (J_xz, J_yz) + omega^2 (-J_yz, J_xz).
        (6) J_R omega' + sum J_C alpha'' = sum (r_i - r_T) x T_i. Document 004 omits the steering inertias, or the
        reaction -M_C of the steering motors, and prints J_R omega for the moment J omega' + omega x J omega.
        (7) J_W Omega' = M - R T . n. (8) J_C alpha'' = M_C - e n x T. Without steering alpha'' = omega', and M_C is the
        reaction of the mount.
        The normal forces follow a rigid plate on springs, `support_matrix`. Here all wheels carry; `motion` treats
        negative forces.

        Arguments as `motion`.

        Raises:
            InputError: wrong shapes, NaN, a steering torque on a wheel without steering, or contacts on one line.

        Source: document 004 (1)-(8), systems 42, 46-50; D-004-1, D-004-4, D-004-5, D-004-6.
        """
        drive = wheel_torques("wheel_torques", torques, self.wheels)
        steer = wheel_torques("steering_torques", steering_torques, self.wheels)
        contact = contacts(self.wheels, state)
        steerable, n = self.steerable, len(self.wheels)
        for i, wheel in enumerate(self.wheels):
            if steer[i] != 0.0 and not wheel.steerable:
                raise InputError(
                    f"steering torque of wheel {wheel.name}", got=f"{steer[i]:g} N m", expected="0: it has no steering"
                )
        m, yaw_rate = self.mass, state.twist[2]
        cx, cy, height = self.centre_of_mass
        spins = np.array([wheel.spin_inertia for wheel in self.wheels])
        swings = np.array([wheel.steering_inertia for wheel in self.wheels])
        first_spin = 3 + len(steerable)
        mass = np.zeros((first_spin + n, first_spin + n))
        mass[0, 0] = mass[1, 1] = m
        mass[0, 2] = mass[2, 0] = -m * cy
        mass[1, 2] = mass[2, 1] = m * cx
        carried = sum(wheel.steering_inertia for wheel in self.wheels if not wheel.steerable)
        mass[2, 2] = self.yaw_inertia + carried + m * (cx**2 + cy**2)
        diagonal = np.arange(3, first_spin + n)
        mass[diagonal, diagonal] = np.concatenate([swings[steerable], spins])
        centripetal = m * yaw_rate**2
        load = np.concatenate([[centripetal * cx, centripetal * cy, -np.sum(steer)], steer[steerable], drive])

        # Load on the plate: weight, sum (x - x_T) N = -dHy - height m a_Tx, sum (y - y_T) N = dHx - height m a_Ty.
        along, turn = contact.headings, contact.turning * state.wheel_speeds
        weight = np.zeros((3, len(load)))
        weight[1, :3] = -height * m * np.array([1.0, 0.0, -cy]) - np.array([0.0, 0.0, self.product_yz])
        weight[2, :3] = -height * m * np.array([0.0, 1.0, cx]) + np.array([0.0, 0.0, self.product_xz])
        weight[1, first_spin:] = -spins * along[:, 0]
        weight[2, first_spin:] = -spins * along[:, 1]
        constant = np.array(
            [
                m * self.gravity,
                height * centripetal * cx - self.product_xz * yaw_rate**2 + spins * turn @ along[:, 1],
                height * centripetal * cy - self.product_yz * yaw_rate**2 - spins * turn @ along[:, 0],
            ]
        )
        stiffness = np.array([wheel.stiffness for wheel in self.wheels])
        plate = plate_of(contact.points, stiffness, (cx, cy))
        friction = np.array([wheel.friction_coefficient for wheel in self.wheels])
        return BaseEquations(mass, load, contact, friction, plate, constant, weight)

    def motion(
        self,
        state: BaseState,
        torques: ArrayLike,
        steering_torques: ArrayLike | None = None,
        rolling: ArrayLike | None = None,
    ) -> BaseMotion:
        """Accelerations and forces at one state; decides which wheels roll and which slide unless `rolling` is given.

        A wheel whose contact moves slides: T = -mu N v/|v|. A wheel at rest rolls while friction inside the cone |T| <=
        mu N can hold it; otherwise it starts to slide against the acceleration that it would have. Document 004 counts
        as many equations as unknowns, but this does not suffice while wheels roll: the 18, 25 and 35 equations have
        rank 17, 23-24 and 32. The accelerations are still unique. Of the forces the solution of least norm is returned,
        and `forces_unique` tells whether it is the only one. At the limit of a cone the forces are one admissible set.

        The floor cannot pull. A wheel that it would have to pull lifts and has neither normal force nor friction; the
        others share the load (`lifted`, `tips_over`).

        Args:
            state: of the n wheels.
            torques: (n,) of the wheel motors M_i, at the wheel [N m].
            steering_torques: (n,) of the steering motors M_C [N m], default 0; only for wheels that steer.
            rolling: (n,) of bool: wheels that are forced to roll by any force, even when lifted; the others slide.

        Raises:
            InputError: a state that is not a `BaseState`, wrong shapes, a wheel set to roll whose contact moves, a
                wheel set to slide that stands still (0/0 in (9a, 10a)), or wheels that jam, as under a high load
                (`_regimes.on_pressed_wheels`).

        Source: document 004 (9a), (10a), systems 52-54; D-004-7, D-004-9.
        """
        equations = self.equations(state, torques, steering_torques)
        moving = equations.moving()
        if rolling is None:
            on_these, solution = on_pressed_wheels(equations, _roll_if_held)
        else:
            flags = array("rolling", rolling, (len(self.wheels),)).astype(bool)
            self._check_speeds(equations, flags, moving)
            on_these, solution = on_pressed_wheels(equations, lambda some: solve_regimes(some, flags))
        return self._motion(state, on_these, solution, steering_torques)

    def _check_speeds(self, equations: BaseEquations, rolling: Flags, moving: Flags) -> None:
        for i, wheel in enumerate(self.wheels):
            if rolling[i] == moving[i]:
                speed = np.linalg.norm(equations.contact.velocities[equations.contact.owner == i])
                expected = "0: it is set to roll" if rolling[i] else "a speed: the direction of its slip is undefined"
                raise InputError(f"contact speed of wheel {wheel.name}", got=f"{speed:.3g} m/s", expected=expected)

    def _motion(
        self, state: BaseState, equations: BaseEquations, solution: RegimeSolution, steering_torques: ArrayLike | None
    ) -> BaseMotion:
        n, steerable, acceleration = len(self.wheels), self.steerable, solution.acceleration
        contact = equations.contact
        forces = np.zeros((n, 2))
        np.add.at(forces, contact.owner, solution.row_forces[:, None] * contact.directions)
        vx, vy, yaw_rate = state.twist
        steering = np.zeros(n)
        steering[steerable] = acceleration[3 : 3 + len(steerable)] - acceleration[2]
        reactions = wheel_torques("steering_torques", steering_torques, self.wheels).copy()
        for i, wheel in enumerate(self.wheels):
            if not wheel.steerable:
                (nx, ny), (tx, ty) = contact.headings[i], forces[i]
                reactions[i] = wheel.steering_inertia * acceleration[2] + wheel.offset * (nx * ty - ny * tx)
        return BaseMotion(
            twist_rate=acceleration[:3] + [yaw_rate * vy, -yaw_rate * vx, 0.0],
            wheel_accelerations=acceleration[3 + len(steerable) :],
            steering_accelerations=steering,
            tangential_forces=forces,
            normal_forces=np.maximum(solution.normals, 0.0),  # rounding
            lifted=~equations.plate.carrying,
            steering_torques=reactions,
            rolling=solution.rolling,
            rank=solution.rank,
            constraints=solution.constraints,
            residual=solution.residual,
        )


def _roll_if_held(equations: BaseEquations) -> RegimeSolution:
    solution = solve_regimes(equations, equations.plate.carrying & ~equations.moving())
    return solution if solution.inside_cones(equations) else solve_cones(equations)
