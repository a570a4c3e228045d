"""Bases with wheels for the tests, and the equations of document 004 in its fixed frame, as an independent oracle."""

from __future__ import annotations

import numpy as np

from youbot_dynamics.source_systems.wheeled_base import BaseState, Wheel, WheeledBase

# Around the base as document 004 counts: front left, front right, rear right, rear left, middle left, middle right.
RING = np.array([[0.25, 0.2], [0.25, -0.2], [-0.25, -0.2], [-0.25, 0.2], [0.0, 0.2], [0.0, -0.2]])
TRIANGLE = np.array([[0.2, 0.2], [0.2, -0.2], [-0.3, 0.0]])
ROLLERS = np.array([-1.0, 1.0, -1.0, 1.0]) * np.pi / 4  # in ring order


def wheel(name: str, kind: str, position, **changes) -> Wheel:
    values = {"radius": 0.08, "spin_inertia": 0.012, "friction_coefficient": 0.7, "steering_inertia": 0.03}
    return Wheel(name, kind, position, **{**values, **changes})


def base_of(kinds: list[str], positions=None, **changes) -> WheeledBase:
    """One wheel a kind, in ring order; casters trail by 6 cm, mecanum rollers stand as on the youBot."""
    places = positions if positions is not None else (TRIANGLE if len(kinds) == 3 else RING)
    wheels = []
    for i, kind in enumerate(kinds):
        extra = {"caster": {"offset": 0.06}, "mecanum": {"roller_angle": ROLLERS[i % 4]}}.get(kind, {})
        wheels.append(wheel(f"w{i}", kind, places[i], **extra))
    values = {
        "mass": 60.0,
        "yaw_inertia": 3.0,
        "centre_of_mass": (0.03, -0.02, 0.15),
        "product_xz": 0.4,
        "product_yz": -0.3,
    }
    return WheeledBase(tuple(wheels), **{**values, **changes})


LAYOUTS = {
    "differential": ["fixed", "fixed", "caster"],
    "three steered": ["steered", "steered", "steered"],
    "car": ["steered", "steered", "fixed", "fixed"],
    "four steered": ["steered"] * 4,
    "four casters": ["caster"] * 4,
    "youBot": ["mecanum"] * 4,
    "six": ["caster", "caster", "caster", "caster", "fixed", "fixed"],
    "mixed": ["mecanum", "caster", "steered", "fixed"],
}


def sliding_state(base: WheeledBase, seed: int) -> BaseState:
    """Every contact moves."""
    random = np.random.default_rng(seed)
    n = len(base.wheels)
    steers = np.array([wheel.steerable for wheel in base.wheels])
    return BaseState(
        twist=random.normal(size=3),
        wheel_speeds=random.normal(size=n) * 8.0,
        steering_angles=random.normal(size=n) * steers,
        steering_rates=random.normal(size=n) * steers,
        pose=random.normal(size=3),
    )


def rolling_state(base: WheeledBase, seed: int, straight: bool = False) -> BaseState:
    """No contact moves: steered wheels along their speed, casters at any angle, the centre of turn on fixed axles."""
    random = np.random.default_rng(seed)
    twist = random.normal(size=3)
    fixed = [wheel.position for wheel in base.wheels if wheel.kind == "fixed"]
    if fixed:
        twist[1] = -twist[2] * fixed[0][0]
    if straight:
        twist[1:] = 0.0
    angles = np.zeros(len(base.wheels))
    for i, one in enumerate(base.wheels):
        x, y = one.position
        if one.kind == "steered":
            angles[i] = np.arctan2(twist[1] + twist[2] * x, twist[0] - twist[2] * y)
        elif one.kind == "caster" and not straight:
            angles[i] = random.uniform(-3.0, 3.0)
    return base.rolling_state(twist, angles, random.normal(size=3))


def rotation(angle: float) -> np.ndarray:
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def document_system(
    base: WheeledBase,
    state: BaseState,
    torques,
    steering_torques,
    rolling,
    printed: frozenset[str] = frozenset(),
    pattern: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Matrix and right side of document 004's 18, 25 or 35 equations in the fixed frame, plain wheels only.

    Unknowns v_0' (2), omega', T (2 n), N (n), Omega' (n), alpha'' (n), and for n > 3 Nx, Ny. `printed` names the
    equations taken as the document prints them: "moments" (4, 5), "yaw" (6), "steering" (8), "rolling" (9b, 10b).
    Without `pattern` a flat plate shares the weight, N = l0 + lx x + ly y; then l0, lx, ly stand for Nx, Ny.
    """
    n = len(base.wheels)
    turn, psi, w = rotation(state.pose[2]), state.pose[2], state.twist[2]
    size = 3 + 5 * n + (0 if n == 3 else 2 if pattern else 3)
    tx, ty, nn = (3 + 2 * np.arange(n)), (4 + 2 * np.arange(n)), 3 + 2 * n + np.arange(n)
    oo, aa = 3 + 3 * n + np.arange(n), 3 + 4 * n + np.arange(n)
    rows, right = [], []

    def add(entries: dict, value: float) -> None:
        row = np.zeros(size)
        for index, number in entries.items():
            row[index] += number
        rows.append(row)
        right.append(value)

    m, height = base.mass, base.centre_of_mass[2]
    cx, cy = turn @ base.centre_of_mass[:2]  # r_T - r_0
    alpha = psi + np.array([one.mount_angle for one in base.wheels]) + state.steering_angles
    rate = w + state.steering_rates
    n_ = np.column_stack([np.cos(alpha), np.sin(alpha)])
    t_ = np.column_stack([-np.sin(alpha), np.cos(alpha)])
    pivots = np.array([turn @ one.position for one in base.wheels])
    e = np.array([one.offset for one in base.wheels])
    points = pivots - e[:, None] * n_
    jw = np.array([one.spin_inertia for one in base.wheels])
    jc = np.array([one.steering_inertia for one in base.wheels])
    radius = np.array([one.radius for one in base.wheels])
    mu = np.array([one.friction_coefficient for one in base.wheels])
    v0 = turn @ state.twist[:2]
    spin = state.wheel_speeds

    add({0: m, 2: -m * cy, **{k: -1.0 for k in tx}}, m * w**2 * cx)  # (1)
    add({1: m, 2: m * cx, **{k: -1.0 for k in ty}}, m * w**2 * cy)  # (2)
    if n == 3 or not pattern:
        add({k: 1.0 for k in nn}, m * base.gravity)  # (3)
    if n > 3 and not pattern:
        for i, (x, y) in enumerate(points):
            add({nn[i]: 1.0, size - 3: -1.0, size - 2: -x, size - 1: -y}, 0.0)
    elif n > 3:
        for i, (sx, sy) in enumerate([(1, 1), (1, -1), (-1, -1), (-1, 1), (0, 1), (0, -1)][:n]):
            add({nn[i]: 1.0, size - 2: -sx, size - 1: -sy}, m * base.gravity / n)
    jxz, jyz = turn @ [base.product_xz, base.product_yz]
    moment_x = {nn[i]: points[i, 1] - cy for i in range(n)} | {ty[i]: height for i in range(n)}
    moment_y = {nn[i]: -(points[i, 0] - cx) for i in range(n)} | {tx[i]: -height for i in range(n)}
    value_x = value_y = 0.0
    if "moments" not in printed:
        moment_x |= {oo[i]: -jw[i] * t_[i, 0] for i in range(n)} | {2: -jxz}
        moment_y |= {oo[i]: -jw[i] * t_[i, 1] for i in range(n)} | {2: -jyz}
        value_x = -np.sum(jw * spin * rate * n_[:, 0]) - w**2 * jyz
        value_y = -np.sum(jw * spin * rate * n_[:, 1]) + w**2 * jxz
    add(moment_x, value_x)  # (4)
    add(moment_y, value_y)  # (5)
    yaw = {2: base.yaw_inertia}
    yaw |= {ty[i]: -(points[i, 0] - cx) for i in range(n)} | {tx[i]: points[i, 1] - cy for i in range(n)}
    if "yaw" not in printed:
        yaw |= {aa[i]: jc[i] for i in range(n)}
    add(yaw, 0.0)  # (6)
    for i, one in enumerate(base.wheels):
        add({oo[i]: jw[i], tx[i]: radius[i] * n_[i, 0], ty[i]: radius[i] * n_[i, 1]}, torques[i])  # (7)
        if one.steerable or "steering" in printed:
            add({aa[i]: jc[i], tx[i]: e[i] * t_[i, 0], ty[i]: e[i] * t_[i, 1]}, steering_torques[i])  # (8)
        else:
            add({aa[i]: 1.0, 2: -1.0}, 0.0)
        if rolling[i]:  # (9b), (10b)
            for axis, force in ((0, -1.0), (1, 1.0)):
                arm = points[i, 1 - axis]
                spun = {oo[i]: -radius[i] * n_[i, axis]}
                product = radius[i] * spin[i] * rate[i] * t_[i, axis] + w**2 * pivots[i, axis]
                if "rolling" in printed:
                    add({axis: 1.0, 2: force * arm, **spun}, product - w * e[i] * rate[i] * n_[i, axis])
                else:
                    lever = pivots[i, 1 - axis]
                    swing = {aa[i]: -e[i] * t_[i, axis]}
                    add({axis: 1.0, 2: force * lever, **spun, **swing}, product - e[i] * rate[i] ** 2 * n_[i, axis])
        else:  # (9a), (10a)
            v = v0 + w * np.array([-pivots[i, 1], pivots[i, 0]]) - e[i] * rate[i] * t_[i] - radius[i] * spin[i] * n_[i]
            v /= np.linalg.norm(v)
            add({tx[i]: 1.0, nn[i]: mu[i] * v[0]}, 0.0)
            add({ty[i]: 1.0, nn[i]: mu[i] * v[1]}, 0.0)
    return np.array(rows), np.array(right)


def as_unknowns(base: WheeledBase, state: BaseState, motion) -> np.ndarray:
    """A motion in the order and the fixed frame of `document_system`."""
    turn, n = rotation(state.pose[2]), len(base.wheels)
    vx, vy, w = state.twist
    acceleration = turn @ (motion.twist_rate[:2] + w * np.array([-vy, vx]))
    forces = motion.tangential_forces @ turn.T
    normals = motion.normal_forces
    parts = [acceleration, [motion.twist_rate[2]], forces.reshape(-1), normals, motion.wheel_accelerations]
    parts.append(motion.steering_accelerations + motion.twist_rate[2])
    if n > 3:
        plate = np.column_stack([np.ones(n), contact_points(base, state) @ turn.T])
        parts.append(np.linalg.lstsq(plate, normals, rcond=None)[0])
    return np.concatenate(parts)


def contact_points(base: WheeledBase, state: BaseState) -> np.ndarray:
    """Contact points (n, 2) from the centre, body axes."""
    angles = np.array([one.mount_angle for one in base.wheels]) + state.steering_angles
    trails = np.array([one.offset for one in base.wheels])
    places = np.array([one.position for one in base.wheels])
    return places - trails[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
