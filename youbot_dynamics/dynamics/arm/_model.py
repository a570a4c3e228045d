"""An arm, by default the youBot's: rigid bodies, and LuGre friction and a motor with gear and heat on each joint.

Source: documents 000 to 002, systems 1-12, 18-23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from youbot_dynamics.arrays import MadeOfArguments, Vector, array, positive_time, read_only, scalar
from youbot_dynamics.dynamics.arm import _advance as motion_of
from youbot_dynamics.dynamics.arm import _step as steps
from youbot_dynamics.dynamics.arm._step import ArmBody, arm_body
from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.thermal_motor import GearedMotor
from youbot_dynamics.dynamics.tree import Tree, without_fixed_joints
from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.resources import urdf_path

ROOT_LINK, TIP_LINK = "arm_link_0", "arm_link_5"


def arm_tree(
    rotor_inertias: ArrayLike | None = None,
    *,
    urdf: str | Path | None = None,
    root: str = ROOT_LINK,
    tip: str = TIP_LINK,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Tree:
    """Tree of the n moving joints between two links of a URDF, on an upright base; by default the youBot's five.

    Joints of other branches and beyond the tip are locked at 0: the last body includes the closed gripper.

    Args:
        rotor_inertias: (n,) reflected inertias N^2 J of the motors [kg m2]; none by default.
        urdf: file or text; urdf/youbot.urdf by default.
        root: link that carries the first joint.
        tip: last link of the arm.
        gravity: (3,) in the frame of the root link [m/s2]; it is tilted where the floor is.

    Raises:
        ModelError: a file that is not a URDF, a link that is not in it, a tip that the root does not carry, links
            without any mass, or inertias that no body can have.
    """
    source = urdf_path("youbot.urdf") if urdf is None else urdf
    tree = Tree.from_urdf(source, root=root, tip=tip, rotor_inertias=rotor_inertias, gravity=gravity)
    moving = without_fixed_joints(tree)
    if not np.any(moving.layout.masses):
        raise ModelError(
            f"links from {root} to {tip} in the URDF of the arm",
            got="no mass of any of them",
            expected="an <inertial> with the mass of each link",
            remedy="add them: without the weight of the links, the efforts tell nothing of friction",
        )
    return moving


@dataclass(frozen=True, eq=False)
class ArmState(MadeOfArguments):
    """State of n joints. Each array (n,) is a read-only copy.

    Raises:
        InputError: an argument that is not a row of finite numbers.
    """

    position: Vector  # [rad]
    speed: Vector  # [rad/s]
    bristle: Vector  # deflection of the LuGre bristles [rad]
    winding: Vector  # temperature of the windings [degC]
    housing: Vector  # temperature of the motor housings [degC]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for name in _COLUMNS:
            value = getattr(self, name)
            if not isinstance(value, np.ndarray) or value.flags.writeable:
                object.__setattr__(self, name, read_only(array(name, value, (None,)).copy()))


@dataclass(frozen=True, eq=False)
class ArmMotion:
    """Motion of an arm of n joints over t steps, each array (t, n).

    Positions, speeds, bristles and temperatures are those after each step; the others are means over the step.
    """

    position: Vector  # [rad]
    speed: Vector  # [rad/s]
    bristle: Vector  # [rad]
    winding: Vector  # [degC]
    housing: Vector  # [degC]
    current: Vector  # of the motors [A]
    motor_torque: Vector  # of the motors at the joints [N m]
    friction_torque: Vector  # of the joints [N m]; it opposes the motion
    end: ArmState  # state after the last step


@dataclass(frozen=True, eq=False)
class ArmModel(MadeOfArguments):
    """An arm of n joints with friction and motors; `robot.arm.model()` returns that of the youBot.

    Args:
        tree: n revolute or prismatic joints in order, with the motors' reflected inertias as rotor inertias.
        friction: [n] of the joints.
        motors: [n] motors with their gears. Their efficiency is 1 and their rotor friction 0, because `friction` is
            fitted at the joint and already contains the losses of gear and rotor.

    Attributes:
        body: bodies and friction for the compiled steps; without end stops.

    Raises:
        ModelError: not one friction and one motor a joint, a joint with more than one speed, rotor inertias that differ
            from those of the motors, or a motor with losses of its own.
    """

    tree: Tree
    friction: tuple[LuGre, ...]
    motors: tuple[GearedMotor, ...]
    body: ArmBody = field(init=False, repr=False)
    _motors: Vector = field(init=False, repr=False)
    _heats: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the parts fit together and prepare their constants for the steps."""
        object.__setattr__(self, "friction", tuple(self.friction))
        object.__setattr__(self, "motors", tuple(self.motors))
        n = self.tree.nv
        if not (self.tree.nq == n == len(self.tree.names)):
            raise ModelError(
                "tree of the arm",
                got=f"{len(self.tree.names)} bodies with {n} speeds, among them one that is fixed or floating",
                expected="a revolute or prismatic joint for each body",
                remedy="merge fixed joints with without_fixed_joints(tree)",
            )
        if not n == len(self.friction) == len(self.motors):
            counts = f"{n} joints, {len(self.friction)} frictions, {len(self.motors)} motors"
            raise ModelError("arm", got=counts, expected="one friction and one motor for each joint")
        reflected = np.array([motor.reflected_inertia for motor in self.motors])
        if not np.allclose(self.tree.layout.rotor_inertias, reflected, rtol=1e-9, atol=0.0):
            raise ModelError(
                "rotor inertias of the arm's tree",
                got=str(self.tree.layout.rotor_inertias),
                expected=f"those of its motors, {reflected}",
                remedy="pass reflected_inertia of the motors as rotor_inertias to arm_tree or Tree.from_urdf",
            )
        for name, motor in zip(self.tree.joint_names, self.motors, strict=True):
            _refuse_losses(name, motor)
        heats = np.array([motor.motor.heat_constants for motor in self.motors])
        object.__setattr__(self, "_motors", read_only(np.array([_motor_constants(motor) for motor in self.motors])))
        object.__setattr__(self, "_heats", read_only(heats))
        body = arm_body(self.tree, np.array([friction.constants for friction in self.friction]))
        object.__setattr__(self, "body", body)

    def __repr__(self) -> str:
        """Show the names of the joints."""
        return f"ArmModel({', '.join(self.tree.joint_names)})"

    def at_rest(self, position: ArrayLike, temperature: float | None = None) -> ArmState:
        """State at rest with zero bristles and motors at `temperature` [degC], by default their ambient temperature.

        Args:
            position: (n,) [rad].
            temperature: of windings and housings [degC].

        Raises:
            InputError: a wrong shape or a number that is not finite.
            ModelError: a temperature at which the resistance of a winding would not be positive.
        """
        n = self.tree.nv
        warm = np.array([motor.motor.ambient_temperature for motor in self.motors])
        if temperature is not None:
            warm = np.full(n, scalar("temperature", temperature))
        state = _state(np.column_stack([array("position", position, (n,)), np.zeros((n, 2)), warm, warm]))
        self._columns(state)
        return state

    def friction_torque(self, state: ArmState) -> Vector:
        """Friction torques (n,) [N m] at a state; they oppose the motion.

        Raises:
            InputError: a bristle or speed that is not finite.

        Source: document 001 (9).
        """
        pairs = zip(self.friction, state.bristle, state.speed, strict=True)
        return np.array([friction.torque(float(z), float(v)) for friction, z, v in pairs])

    def acceleration(self, state: ArmState, torque: ArrayLike) -> Vector:
        """Accelerations (n,) [rad/s2]: q'' = M^-1 (tau - bias - tau_f).

        tau (n,) is the total torque of the motors at the joints. Document 001 (3) has tau_d here, from which its (1)
        has already subtracted the friction, and so subtracts it twice.

        Args:
            state: of the arm.
            torque: (n,) of the motors at the joints [N m].

        Raises:
            InputError: a wrong shape or a number that is not finite.

        Source: document 001 (3), system 7; D-001-1.
        """
        tau = array("torque", torque, (self.tree.nv,))
        return self.tree.forward_dynamics(state.position, state.speed, tau - self.friction_torque(state))

    def energy(self, state: ArmState) -> float:
        """Kinetic, potential and bristle energy [J], without the heat in the motors."""
        bodies = self.tree.bodies(state.position, state.speed)
        stiffness = np.array([friction.sigma0 for friction in self.friction])
        return bodies.kinetic_energy + bodies.potential_energy + float(0.5 * stiffness @ state.bristle**2)

    def step(
        self,
        state: ArmState,
        dt: float,
        *,
        torque: ArrayLike | None = None,
        current: ArrayLike | None = None,
        voltage: ArrayLike | None = None,
    ) -> ArmState:
        """State after `dt` [s], driven by a torque, a current or a voltage (n,): a single step of `simulate`."""
        drives = {"torque": torque, "current": current, "voltage": voltage}
        row = {name: array(name, value, (self.tree.nv,))[None] for name, value in drives.items() if value is not None}
        return self.simulate(state, dt, **row).end

    def simulate(
        self,
        state: ArmState,
        dt: float,
        *,
        torque: ArrayLike | None = None,
        current: ArrayLike | None = None,
        voltage: ArrayLike | None = None,
    ) -> ArmMotion:
        """Motion over t steps (see `_step`), driven by a torque, a current or a voltage.

        A torque is that of an ideal gear, N K i, and so sets the current that heats the winding. There are no end stops
        and no current limits here; they belong to the model that drives the arm. The method is of second order where
        the steps resolve the bristles. For a swing of 1.9 rad in 1 s at 1 ms the error of the youBot's arm is 16 urad;
        with a bristle of 1e5 N m/rad it is 1.5 mrad. The mean current of a voltage heats the winding during the whole
        step, so dt must be short against the thermal time constant of the winding (8 to 13 s).

        Args:
            state: at the start.
            dt: step [s], above 0.
            torque: (t, n) at the joints, constant over each step [N m].
            current: (t, n) of the motors [A].
            voltage: (t, n) of the motors [V].

        Raises:
            InputError: a state that is not an ArmState, not exactly one drive, a wrong shape, a number that is not
                finite, a bristle beyond its reach, an unbounded motion (1e6 rad/s), or a step that Newton's method did
                not solve.
            ModelError: a winding so cold that its resistance is not positive, at the start or during the motion.
        """
        drive, values = _only({"torque": torque, "current": current, "voltage": voltage})
        n = self.tree.nv
        rows = array(drive, values, (None, n))
        if drive == "torque":
            rows = rows / (self._motors[:, 0] * self._motors[:, 1])
        step = positive_time("dt", dt)
        columns = self._columns(state)
        states, means = np.empty((len(rows), n, 5)), np.empty((len(rows), n, 3))
        done, end = motion_of.advance(
            self.body,
            self._motors,
            self._heats,
            rows,
            drive == "voltage",
            step,
            columns,
            states,
            means,
        )
        if end == motion_of.FROZEN:
            raise ModelError(
                f"winding at {drive} [{done}]",
                got="a resistance that is not positive",
                expected="temperatures of winding and housing above T_ref - 1/alpha",
            )
        if end != steps.DONE:
            raise InputError(f"{drive} [{done}]", **_FAILURES[end])
        position, speed, bristle, winding, housing = states.transpose(2, 0, 1)
        current_of, driving, resisting = means.transpose(2, 0, 1)
        return ArmMotion(position, speed, bristle, winding, housing, current_of, driving, resisting, _state(columns))

    def _columns(self, state: ArmState) -> Vector:
        """Check a state and return it as an array (n, 5) for the steps."""
        if not isinstance(state, ArmState):
            raise InputError("state", got=type(state).__name__, expected="an ArmState, as from at_rest")
        columns = np.column_stack([array(name, getattr(state, name), (self.tree.nv,)) for name in _COLUMNS])
        for name, friction, motor, row in zip(
            self.tree.joint_names, self.friction, self.motors, columns.tolist(), strict=True
        ):
            if not abs(row[motion_of.BRISTLE]) <= friction.reach * (1.0 + _ROUNDING):
                raise InputError(
                    f"bristle of {name}",
                    got=f"{row[motion_of.BRISTLE]:g}",
                    expected=f"at most its reach {friction.reach:g} [rad] in both directions",
                    remedy="use LuGre.clamp: beyond the reach friction can supply energy",
                )
            try:
                motor.motor.resistance_at(row[motion_of.WINDING])
            except ModelError as error:
                raise ModelError(f"{name}, {error.thing}", got=error.got, expected=error.expected) from None
        return columns


_COLUMNS = ("position", "speed", "bristle", "winding", "housing")
_ROUNDING = 1e-9  # relative tolerance of a bristle at its reach
_FAILURES = {
    steps.UNBOUNDED: {
        "got": "a motion without bounds",
        "expected": "torques, currents or voltages that the arm can follow",
        "remedy": "check their unit and the time step",
    },
    steps.UNSOLVED: {
        "got": "a step that did not converge",
        "expected": "an acceleration that solves it",
        "remedy": "shorten the step",
    },
}


def _only(drives: Mapping[str, ArrayLike | None]) -> tuple[str, ArrayLike]:
    """Name and values of the one drive that is given; InputError for none or several."""
    given = [(name, values) for name, values in drives.items() if values is not None]
    if len(given) != 1:
        got = " and ".join(name for name, _ in given) or "none"
        raise InputError("drive of the arm", got=got, expected=f"one of {', '.join(drives)}")
    return given[0]


def _state(columns: Vector) -> ArmState:
    return ArmState(*(read_only(column.copy()) for column in columns.T))


def _refuse_losses(name: str, motor: GearedMotor) -> None:
    """Refuse a motor with losses: at rest they hold any torque, which only the bristle model describes."""
    if motor.efficiency != 1.0:
        raise ModelError(
            f"efficiency of the gear of {name}",
            got=f"{motor.efficiency:g}",
            expected="1 in an arm",
            remedy="put its losses into the friction of the joint",
        )
    if motor.motor.rotor_friction != 0.0:
        at_joint = motor.ratio**2 * motor.motor.rotor_friction
        raise ModelError(
            f"rotor_friction of the motor of {name}",
            got=f"{motor.motor.rotor_friction:g}",
            expected="0 in an arm",
            remedy=f"add N^2 D = {at_joint:g} N m s/rad to the viscous friction of the joint",
        )


def _motor_constants(motor: GearedMotor) -> Sequence[float]:
    inside = motor.motor
    return (
        inside.torque_constant,
        motor.ratio,
        inside.resistance,
        inside.temperature_coefficient,
        inside.reference_temperature,
    )
