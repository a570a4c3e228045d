"""Base simulators at 1 ms: our regularised one beside our dense solve and a contact model in MuJoCo.

Ours is planar: 4 wheels of document 004, two of them steered (25 unknowns), or the youBot's mecanum wheels. MuJoCo
solves a richer problem: 29 bodies, each wheel with 6 free rollers of 11 spheres that touch the floor one by one. Its
floor is stiff (time constant 4 ms); on the soft one of its defaults the base sinks in and loses a fifth of its
acceleration.

Beside them what the driving nodes do in each period: a step of the tracker, and odometry's reading of the wheels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from bench.harness import AccuracyGoal, Candidate, Goal, Item, TimeGoal
from youbot_dynamics.control.tracker import TrackerSettings
from youbot_dynamics.control.trajectory import read_program
from youbot_dynamics.estimation.odometry import BaseEstimator
from youbot_dynamics.resources import program_path
from youbot_dynamics.robot import Robot, load_robot
from youbot_dynamics.source_systems.wheeled_base import BaseState, Wheel, WheeledBase, simulate
from youbot_dynamics.source_systems.wheeled_base._simulation import SLIP_SPEED

RADIUS, HALF_LENGTH, HALF_WIDTH = 0.0475, 0.228, 0.158  # [m], of the URDF
PLACES = [
    (HALF_LENGTH, HALF_WIDTH),
    (HALF_LENGTH, -HALF_WIDTH),
    (-HALF_LENGTH, HALF_WIDTH),
    (-HALF_LENGTH, -HALF_WIDTH),
]
ROLLER_ANGLES = np.array([-1.0, 1.0, 1.0, -1.0]) * np.pi / 4
ROLLERS, SPHERES, ROLLER_RADIUS = 6, 11, 0.0145
STEP, STEPS, PLAIN_STEPS, CONTACT_STEPS = 1e-3, 10000, 1000, 20
PERIOD, TURNED = 0.02, np.array([0.1, 0.08, 0.1, 0.08])  # [s], [rad] a period
SHEET, IDENTIFIED, WHEELS = "tracker step (sheet values)", "tracker step (identified robot)", "take_wheels"
TORQUES = np.array([0.4, 0.2, 0.3, 0.4])  # [N m]
OURS, OF_DOCUMENT = "mecanum wheels", "wheels of document 004"
MUJOCO, ELLIPTIC = "MuJoCo, 4 x 6 rollers", "MuJoCo, elliptic cones"
CAR, YOUBOT = ("steered", "fixed"), ("mecanum", "mecanum")


def base(kinds: tuple[str, str]) -> WheeledBase:
    """22 kg body and four wheels with reflected rotors; kinds in front and behind."""
    wheels = [
        Wheel(
            str(i),
            kinds[i // 2],
            np.array(place),
            RADIUS,
            0.0106,
            0.8,
            steering_inertia=0.02,
            roller_angle=float(ROLLER_ANGLES[i]) if kinds[i // 2] == "mecanum" else 0.0,
        )
        for i, place in enumerate(PLACES)
    ]
    return WheeledBase(tuple(wheels), 27.6, 1.26, np.array([0.0, 0.0, 0.1]))


def start(kinds: tuple[str, str]) -> BaseState:
    """A skid with the wheels at rest, so that all friction is at work."""
    angles = np.array([0.2, -0.1, 0.0, 0.0]) if kinds[0] == "steered" else None
    return BaseState(np.array([0.3, 0.05, 0.2]), np.zeros(4), angles)


def dense_error(kinds: tuple[str, str], steps: int = 200) -> float:
    """Largest difference of the twists from the same steps solved with all forces as unknowns."""
    model, state = base(kinds), start(kinds)
    run = simulate(model, state, np.tile(TORQUES, (steps, 1)))
    normals, worst = run.normal_forces, 0.0
    for k in range(steps):
        state = run.state(k)
        equations = model.equations(state, TORQUES)
        contact = equations.contact
        m, r = len(equations.mass), len(contact.owner)
        squares = np.bincount(contact.owner, contact.velocities**2, 4)
        kappa = (0.8 * np.maximum(normals[k], 0.0) / np.sqrt(squares + SLIP_SPEED**2))[contact.owner]
        system = np.eye(m + r)
        system[:m, :m], system[:m, m:] = equations.mass, -contact.rows.T
        system[m:, :m] = STEP * kappa[:, None] * contact.rows
        right = np.concatenate([equations.load, -kappa * (contact.velocities + STEP * contact.drift)])
        yaw_rate = state.twist[2] + STEP * np.linalg.solve(system, right)[2]
        worst = max(worst, abs(yaw_rate - run.twists[k + 1, 2]))
    return float(worst)


def _wheel_xml(index: int) -> str:
    (x, y), angle = PLACES[index], ROLLER_ANGLES[index]
    depth = RADIUS - ROLLER_RADIUS  # of the roller axis below the axle
    reach = depth * np.tan(np.pi / ROLLERS) / abs(np.sin(angle))
    rollers = []
    for k in range(ROLLERS):
        phase = 2.0 * np.pi * k / ROLLERS
        out = np.array([np.sin(phase), 0.0, -np.cos(phase)])
        along = np.array([np.cos(phase), 0.0, np.sin(phase)])
        # At the bottom (phase 0) the axis has the roller angle from the x axis.
        axis = np.cos(angle) * along + np.sin(angle) * np.array([0.0, 1.0, 0.0])
        spheres = []
        for s in np.linspace(-reach, reach, SPHERES):
            place = depth * out + s * axis
            size = RADIUS - np.hypot(place[0], place[2])
            inside = s * axis
            spheres.append(
                f'<geom type="sphere" size="{size}" pos="{inside[0]} {inside[1]} {inside[2]}" mass="0.009" '
                'contype="1" conaffinity="0"/>'
            )
        where = depth * out
        rollers.append(
            f'<body pos="{where[0]} {where[1]} {where[2]}"><joint type="hinge" axis="{axis[0]} {axis[1]} {axis[2]}"/>'
            f"{''.join(spheres)}</body>"
        )
    return (
        f'<body pos="{x} {y} 0"><joint name="w{index}" type="hinge" axis="0 1 0" armature="0.009"/>'
        '<geom type="cylinder" size="0.02 0.02" euler="90 0 0" mass="0.8" contype="0" conaffinity="0"/>'
        f"{''.join(rollers)}</body>"
    )


def contact_model(cones: str) -> str:
    """MJCF of the base on 4 x 6 rollers that turn freely; `cones` are attributes of its options."""
    wheels = "".join(_wheel_xml(i) for i in range(4))
    motors = "".join(f'<motor joint="w{i}"/>' for i in range(4))
    return f"""<mujoco><option timestep="{STEP}" {cones}/><worldbody>
<geom type="plane" size="20 20 1" contype="0" conaffinity="1" friction="0.8 0.005 0.0001"
 solref="0.004 1" priority="1"/>
<body pos="0 0 {RADIUS}"><freejoint/>
<inertial pos="0 0 0.05" mass="22" diaginertia="0.36 0.72 0.83"/>{wheels}</body>
</worldbody><actuator>{motors}</actuator></mujoco>"""


def simulators() -> Item:
    """Ours and a contact engine, a step each."""
    import mujoco

    def contact_engine(cones: str) -> Callable[[], float]:
        model = mujoco.MjModel.from_xml_string(contact_model(cones))
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, 300)  # settle
        data.ctrl[:] = TORQUES
        mujoco.mj_step(model, data, 300)  # drive
        place, speed = data.qpos.copy(), data.qvel.copy()

        def steps() -> float:
            data.qpos[:], data.qvel[:] = place, speed
            mujoco.mj_step(model, data, CONTACT_STEPS)
            return float(data.qvel[0])

        return steps

    torques = np.tile(TORQUES, (STEPS, 1))
    document, youbot = base(CAR), base(YOUBOT)
    says = "real-time factor 1500 at 1 kHz"
    return Item(
        about="one step of 1 ms of a base on four wheels",
        candidates={
            OURS: Candidate(partial(simulate, youbot, start(YOUBOT), torques), samples=STEPS),
            OF_DOCUMENT: Candidate(partial(simulate, document, start(CAR), torques), samples=STEPS),
            "accelerations, rank-revealing": Candidate(partial(document.motion, start(CAR), TORQUES)),
            MUJOCO: Candidate(contact_engine(""), samples=CONTACT_STEPS),
            ELLIPTIC: Candidate(
                contact_engine('cone="elliptic" impratio="10"'), samples=CONTACT_STEPS, note="its remedy against creep"
            ),
        },
        accuracy={
            "document 004: yaw rate against all unknowns at once [rad/s]": dense_error(CAR),
            "mecanum: yaw rate against all unknowns at once [rad/s]": dense_error(YOUBOT),
        },
        goals=(
            Goal(OURS, MUJOCO, 100.0),
            Goal(OF_DOCUMENT, MUJOCO, 100.0),
            TimeGoal(OF_DOCUMENT, STEP / 1500.0, says=says),
            TimeGoal(OURS, STEP / 1500.0, says=says),
            AccuracyGoal("document 004: yaw rate against all unknowns at once [rad/s]", 1e-13),
            AccuracyGoal("mecanum: yaw rate against all unknowns at once [rad/s]", 1e-13),
        ),
        note="MuJoCo solves a richer problem; the comparison is planar model against contact engine.",
    )


def plain_python() -> Item:
    """The same simulation where numba is missing."""
    torques = np.tile(TORQUES, (PLAIN_STEPS, 1))
    says = "real-time factor 100 at 1 kHz"
    return Item(
        about="one step of 1 ms of a base on four wheels, without numba",
        candidates={
            OF_DOCUMENT: Candidate(partial(simulate, base(CAR), start(CAR), torques), samples=PLAIN_STEPS),
            OURS: Candidate(partial(simulate, base(YOUBOT), start(YOUBOT), torques), samples=PLAIN_STEPS),
        },
        goals=(TimeGoal(OF_DOCUMENT, STEP / 100.0, says=says), TimeGoal(OURS, STEP / 100.0, says=says)),
    )


def identified() -> Robot:
    """Our robot with a response such as `youbot identify` finds."""
    robot = load_robot()
    found = {"dead_time_x": 0.095, "dead_time_y": 0.26, "dead_time_yaw": 0.14, "lag": 0.035, "rate": 14.0}
    found |= {"wheel_coulomb": 0.2, "roller_coulomb": 1.5, "viscous_x": 10.0, "viscous_y": 20.0, "turn_factor": 1.1}
    return replace(robot, base=replace(robot.base, response=replace(robot.base.response, **found)))


def tracking(robot: Robot) -> Callable[[], object]:
    """Steps of a tracker, one after the other; the trajectory begins anew at its end."""
    trajectory, model = read_program(program_path("combined"), PERIOD).trajectory(), robot.base.driven()
    count = round(trajectory.duration / PERIOD)
    trackers = [TrackerSettings().for_trajectory(trajectory, 0.4, model, PERIOD)]
    ticks = [0]

    def step() -> None:
        if ticks[0] == count:
            trackers[0], ticks[0] = TrackerSettings().for_trajectory(trajectory, 0.4, model, PERIOD), 0
        ticks[0] += 1
        now, tracker = PERIOD * ticks[0], trackers[0]
        sent = now + PERIOD
        tracker.observe_sent(sent, tracker.step(sent, now - 0.008, tracker.desired_pose(now)).twist)

    return step


def reading() -> Callable[[], object]:
    """Readings of the wheels, one after the other."""
    estimator, ticks = BaseEstimator(load_robot()), [0]

    def read() -> None:
        ticks[0] += 1
        estimator.take_wheels(PERIOD * ticks[0], TURNED * ticks[0], TURNED / PERIOD)

    return read


def driving() -> Item:
    """What odometry and the tracker work out in each period."""
    return Item(
        about="what the driving nodes work out in each period of 20 ms",
        candidates={IDENTIFIED: tracking(identified()), SHEET: tracking(load_robot()), WHEELS: reading()},
        goals=(
            TimeGoal(IDENTIFIED, 100e-6, says="half a percent of a core at 50 Hz"),
            TimeGoal(WHEELS, 60e-6, says="0.3 percent of a core at 50 Hz"),
        ),
    )


ITEMS = {"base-step": simulators, "base-driving": driving}
ITEMS_WITHOUT_NUMBA = {"base-step-plain": plain_python}
