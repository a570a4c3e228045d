"""Rows of the rollers on the floor: against geometry, against fine steps, and against contact physics."""

from __future__ import annotations

from math import cos, pi, sin, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roller_drives import PROGRAMS, ROBOT, RollerDrive, mujoco_drive, twin_truth
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq

from youbot_dynamics.errors import InputError, ModelError
from youbot_dynamics.kinematics import planar
from youbot_dynamics.kinematics.mecanum import MecanumBase, mean_factor
from youbot_dynamics.kinematics.roller_phase import RollingWheels, ideal_depth

RADIUS, LENGTH, WIDTH = 0.0475, 0.235, 0.15


def wheels_of(phases: object = (0.1, -0.3, 0.45, 0.2), rollers: int = 6) -> RollingWheels:
    return RollingWheels.ideal(MecanumBase.rectangular(RADIUS, LENGTH, WIDTH, mean_factor(rollers)), rollers, phases)


@pytest.mark.parametrize("rollers", [6, 9])
def test_the_constant_factor_is_the_mean_over_a_wheel_that_turns_evenly(rollers: int) -> None:
    """Sideways by R w cos(phi) / tan(d), every phi for the same time; and the middle of the contacts is the wheel's."""
    half = pi / rollers
    assert mean_factor(rollers) == pytest.approx(quad(cos, -half, half)[0] / (2.0 * half), abs=1e-12)
    assert quad(tan, -half, half)[0] == pytest.approx(0.0, abs=1e-12)


def test_the_robots_lateral_factor_is_that_of_six_rollers() -> None:
    assert ROBOT.base.geometry.lateral_factor == pytest.approx(mean_factor(6), abs=1e-4)
    assert mean_factor(9) == pytest.approx(0.9798, abs=1e-4)


@pytest.mark.parametrize("rollers", [6, 9])
def test_over_a_whole_roller_the_base_goes_sideways_by_the_mean(rollers: int) -> None:
    """All four rollers alike, wheels turning evenly: the ripple is over, the factor is left."""
    wheels = wheels_of([0.2] * 4, rollers)
    step = np.array([-1.0, 1.0, 1.0, -1.0]) * wheels.pitch
    # Wheels that turn back pass their rollers the other way round, in mirror image.
    mirrored = wheels.at_phases([-0.2, 0.2, 0.2, -0.2])
    rolled = mirrored.roll(np.zeros(4), step)
    np.testing.assert_allclose(rolled.displacement, [0.0, RADIUS * wheels.pitch * mean_factor(rollers), 0.0], atol=1e-7)
    np.testing.assert_allclose(rolled.residual, 0.0, atol=1e-12)


def row_by_geometry(angle: float, phi: float, depth: float, place: np.ndarray) -> np.ndarray:
    """Row of a wheel from a free roller whose touching point is at rest on the floor, from vectors alone.

    Its axis stands at phi behind the bottom; the point of that axis over the floor below the axle touches.
    """
    middle = depth * np.array([-sin(phi), 0.0, -cos(phi)])
    axis = cos(angle) * np.array([cos(phi), 0.0, -sin(phi)]) + sin(angle) * np.array([0.0, 1.0, 0.0])
    along = brentq(lambda s: (middle + s * axis)[0], -1.0, 1.0)
    above = middle + along * axis
    touching = np.array([0.0, above[1], -RADIUS])
    row = np.zeros(3)
    for column in range(3):
        twist = np.eye(3)[column]
        # Speed of the touching point: of the base, its turn, the wheel about +y, the roller; along the floor nil.
        at = np.array([place[0], place[1], 0.0]) + touching
        base = np.array([twist[0] - twist[2] * at[1], twist[1] + twist[2] * at[0]])
        wheel = np.cross([0.0, 1.0, 0.0], touching)[:2]
        roller = np.cross(axis, touching - above)[:2]
        row[column] = np.linalg.solve(np.column_stack([wheel, roller]), -base)[0]
    return row


@pytest.mark.parametrize("angle", [-0.4, 0.0, 0.3, 0.7])
def test_rows_are_those_of_a_roller_that_stands_on_the_floor(angle: float) -> None:
    wheels = wheels_of()
    rows, phi = wheels.rows(np.full(4, angle)), wheels.roller_angles(np.full(4, angle))
    for k in range(4):
        expected = row_by_geometry(
            float(wheels.base.roller_angles[k]), float(phi[k]), wheels.depth, wheels.base.positions[k]
        )
        np.testing.assert_allclose(rows[k], expected, rtol=1e-9, atol=1e-9)


def test_the_depth_is_that_of_rollers_that_clear_each_other() -> None:
    assert ideal_depth(RADIUS, pi / 4, 6) == pytest.approx(0.035, abs=2e-4)


@given(
    angles=st.lists(st.floats(-40.0, 40.0), min_size=4, max_size=4),
    turns=st.lists(st.integers(-3, 3), min_size=4, max_size=4),
)
@settings(max_examples=50)
def test_rollers_come_again_and_stand_within_half_a_pitch(angles: list, turns: list) -> None:
    wheels = wheels_of()
    phi = wheels.roller_angles(angles)
    assert np.all(np.abs(phi) <= wheels.pitch / 2 + 1e-12)
    again = wheels.at_phases(np.array(wheels.phases) + wheels.pitch * np.array(turns))
    near_a_change = np.abs(np.abs(phi) - wheels.pitch / 2) < 1e-6
    if not np.any(near_a_change):
        np.testing.assert_allclose(again.rows(angles), wheels.rows(angles), atol=1e-6)


STEP = st.lists(st.floats(-1.5, 1.5), min_size=4, max_size=4)


@given(before=STEP, step=STEP, turn=st.one_of(st.none(), st.floats(-0.3, 0.3)))
@settings(max_examples=25)
def test_a_step_over_changes_of_rollers_is_the_limit_of_many_small_ones(before: list, step: list, turn: float) -> None:
    wheels, start, whole = wheels_of(), np.array(before), np.array(step)
    rolled = wheels.roll(start, start + whole, turn)
    pose, left, parts = np.zeros(3), whole.copy(), 1500
    for k in range(parts):
        rows = wheels.rows(start + (k + 0.5) / parts * whole)
        share = whole / parts
        if turn is None:
            move = np.linalg.lstsq(rows, share, rcond=None)[0]
        else:
            plane = np.linalg.lstsq(rows[:, :2], share - rows[:, 2] * turn / parts, rcond=None)[0]
            move = np.array([*plane, turn / parts])
        left -= rows @ move
        pose = planar.compose(pose, planar.exponential(move))
    found = planar.exponential(rolled.displacement)
    # A turn that the wheels do not show may be unevenly spread over the way: second order in both.
    uneven = 0.1 * abs(turn or 0.0) * float(np.hypot(*pose[:2]))
    np.testing.assert_allclose(found[:2], pose[:2], atol=6e-5 + uneven)
    np.testing.assert_allclose(planar.wrap(found[2] - pose[2]), 0.0, atol=3e-4)
    np.testing.assert_allclose(rolled.residual, left, atol=3e-3)


def test_within_a_roller_a_step_is_integrated_to_fourth_order() -> None:
    """No wheel changes its roller: twice the step, 16 times the error, far below a micrometre."""
    wheels, start = wheels_of((0.0, 0.0, 0.0, 0.0)), np.full(4, -0.1)
    errors = []
    for factor in (0.5, 1.0):
        whole = factor * np.array([0.2, 0.11, 0.16, 0.13])
        parts = [wheels.roll(start + k / 64 * whole, start + (k + 1) / 64 * whole).displacement for k in range(64)]
        errors.append(np.max(np.abs(wheels.roll(start, start + whole).displacement - np.sum(parts, axis=0))))
    assert errors[1] < 1e-8
    assert errors[0] < errors[1] / 8.0


@given(before=STEP, step=st.lists(st.floats(-0.2, 0.2), min_size=4, max_size=4))
@settings(max_examples=50)
def test_without_phases_rows_are_the_mean_ones(before: list, step: list) -> None:
    wheels, start, whole = wheels_of(None), np.array(before), np.array(step)
    rolled = wheels.roll(start, start + whole)
    np.testing.assert_allclose(rolled.displacement, wheels.base.twist(whole), atol=1e-15)
    assert wheels.base.slip(rolled.residual) == pytest.approx(wheels.base.slip(whole), abs=1e-14)
    np.testing.assert_allclose(wheels.rows(start), wheels.base.inverse_matrix, rtol=1e-12)


def test_a_wheel_that_is_left_out_has_no_say() -> None:
    wheels, start = wheels_of(), np.zeros(4)
    step = np.array([0.1, 0.12, 0.09, 0.11])
    wrong = step + [0.0, 0.0, 5.0, 0.0]
    weights = np.array([1.0, 1.0, 0.0, 1.0])
    # The wheel's rollers change on the way, so its angle matters for its own row only.
    right = wheels.roll(start, start + step, weights=weights)
    np.testing.assert_allclose(
        wheels.roll(start, start + wrong, weights=weights).displacement, right.displacement, atol=1e-7
    )


def rolled_by(wheels: RollingWheels, twist: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Wheel angles (m, 4) of a base that keeps a twist, the rows wandering with them: by fine steps of an ODE."""
    found = solve_ivp(
        lambda _, w: wheels.rows(w) @ twist,
        (0.0, float(times[-1])),
        np.zeros(4),
        t_eval=times,
        rtol=1e-8,
        max_step=2e-3,
    )
    return found.y.T


@pytest.mark.parametrize("phases", [None, (0.1, -0.3, 0.45, 0.2)], ids=["phases unknown", "phases known"])
def test_a_quarter_circle_at_50_hz_ends_within_a_tenth_of_a_millimetre(phases: object) -> None:
    """Radius 0.5 m, wheels without noise; each plant with the wheels it says it has."""
    wheels = wheels_of(phases)
    times = np.append(np.arange(0.0, pi, 0.02), pi)
    twist = np.array([0.25, 0.0, 0.5])
    angles = np.outer(times, wheels.rows(np.zeros(4)) @ twist) if phases is None else rolled_by(wheels, twist, times)
    end = wheels.path(angles)[-1]
    print(f"off by {np.hypot(end[0] - 0.5, end[1] - 0.5):.1e} m, {abs(end[2] - pi / 2):.1e} rad")
    assert np.hypot(end[0] - 0.5, end[1] - 0.5) < 1e-4
    assert abs(end[2] - pi / 2) < 1e-4


def test_path_is_step_after_step() -> None:
    wheels = wheels_of()
    angles = np.cumsum(np.random.default_rng(3).uniform(-0.2, 0.2, (40, 4)), axis=0)
    pose = np.zeros(3)
    for before, after in zip(angles[:-1], angles[1:], strict=True):
        pose = planar.compose(pose, planar.exponential(wheels.roll(before, after).displacement))
    np.testing.assert_allclose(wheels.path(angles)[-1], pose, atol=1e-12)


def test_wheel_speeds_and_twist_are_inverse() -> None:
    wheels, angles, twist = wheels_of(), np.array([0.3, 1.7, -2.2, 9.0]), np.array([0.2, -0.1, 0.4])
    np.testing.assert_allclose(wheels.twist(angles, wheels.wheel_speeds(angles, twist)), twist, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "thing"),
    [
        ({"rollers": 3}, "rollers"),
        ({"rollers": 6.5}, "rollers"),
        ({"rollers": np.nan}, "rollers"),
        ({"rollers": np.inf}, "rollers"),
        ({"depth": 0.06}, "depth"),
        ({"phases": [0.0]}, "phases"),
    ],
)
def test_wheels_there_are_none_of_are_refused(change: dict, thing: str) -> None:
    base = MecanumBase.rectangular(RADIUS, LENGTH, WIDTH)
    with pytest.raises(ModelError, match=thing):
        RollingWheels(**{"base": base, "rollers": 6, "depth": 0.035, **change})


def test_angles_that_are_no_numbers_are_refused() -> None:
    wheels = wheels_of()
    with pytest.raises(InputError, match="after"):
        wheels.roll(np.zeros(4), [0.0, np.nan, 0.0, 0.0])
    with pytest.raises(InputError, match="angles"):
        wheels.path(np.zeros((5, 3)))


def errors(drive: RollerDrive, known: bool) -> np.ndarray:
    """Errors (m, 3) of poses reckoned from wheels without noise, off the true ones."""
    wheels = drive.wheels if known else drive.wheels.at_phases(None)
    return wheels.path(drive.angle) - (drive.pose - drive.pose[0])


def slip_errors(drive: RollerDrive) -> np.ndarray:
    """Standard deviations (3,) [m, m, rad] of poses by the slip of wheels that their servos drive against each other.

    Four wheels have one motion that no base motion explains: their residual r [m] at the rim, alike in all. Where the
    wheel that carries least slips alone, by 4 r, the base is moved by r ahead, sideways or at the lever. The angles do
    not show which wheel it is. Rollers decide: it is the same while one stands on the floor, and any other one after.
    So the error is a random walk whose steps r_k are the residuals of one roller after the other; less its mean, a walk
    has a variance of sum r_k^2 / 6. On seed 2 (`translation`, 9 rollers, PI servos of 7.6 N m s/rad) the residuals add
    up to 2.4 mm, and the errors to 0.50 mm, 0.99 mrad; with a servo of 1.5 N m s/rad these are 0.9 mm and 0.19 mm,
    0.36 mrad; with loops that know the inertia 1.1 mm and 0.25 mm, 0.45 mrad. The rows are the same in all three.
    On all 18 drives the errors are at most 0.86 of the bound with slip in it.
    """
    wheels, steps = drive.wheels, zip(drive.angle[:-1], drive.angle[1:], strict=True)
    residual = RADIUS * np.mean([np.abs(wheels.roll(before, after).residual) for before, after in steps], axis=1)
    rollers = [np.floor((angles + wheels.phases) / wheels.pitch + 0.5)[0] for angles in drive.angle[1:]]
    roller = np.cumsum(np.diff(rollers, prepend=rollers[0]) != 0.0)
    walk = np.sqrt(np.sum(np.bincount(roller, residual) ** 2) / 6.0)
    return walk / [1.0, 1.0, LENGTH + WIDTH]


def check_against_contacts(program: str, seed: int, rollers: int, seconds: float = 20.0) -> None:
    """Rows with phases: no farther off than contacts creep and slip, and far nearer than the mean rows."""
    pytest.importorskip("mujoco")
    drive = mujoco_drive(program, seed, rollers=rollers, seconds=seconds)
    known, mean = (errors(drive, each).std(axis=0) for each in (True, False))
    # Loops that know the inertia let a wheel go where its roller takes it.
    slip = slip_errors(drive) if twin_truth(seed).servo_gain > 0.0 else np.zeros(3)
    head = f"{program}, {rollers} rollers, seed {seed}: known {known.round(6)}, mean {mean.round(6)}"
    if program == "rotation":
        # On the spot the ripples of the wheels all but cancel: what is left to either is creep and slip.
        share = known / np.hypot([1.5e-4, 1.5e-4, 3.5e-4], slip)
        print(f"{head}, slip {slip.round(6)}, share of the bound {share.max():.2f}")
        assert np.all(share < 1.0)
        return
    # Contacts creep most where the wheels are driven against each other, in all axes at once.
    assert np.all(known < 1e-3)
    off, off_mean, off_slip = (np.hypot(one[0], one[1]) + 0.28 * one[2] for one in (known, mean, slip))
    bound = np.hypot(0.4 * off_mean, off_slip)
    print(f"{head}, slip {slip.round(6)}, share of the bound {off / bound:.2f}, of the mean rows {off / off_mean:.2f}")
    assert off < bound < off_mean


def test_rows_with_phases_follow_rollers_of_contact_physics() -> None:
    """The rows are nowhere in MuJoCo: it has free rollers of 41 spheres."""
    check_against_contacts("combined", 1, 6, seconds=8.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("rollers", [6, 9])
@pytest.mark.parametrize("program", PROGRAMS)
def test_they_do_so_on_all_programs(program: str, rollers: int, seed: int) -> None:
    check_against_contacts(program, seed, rollers)
