"""Friction of the wheels of a real base on two floors, from motor currents that others recorded (Robotino 2).

No recording of a youBot's base with wheel torques is public. This base has three omni wheels and tells the size of its
currents, not their sign: where a wheel turns steadily the current is what holds it back, so |i| = a + b |w| for each
floor, a of Coulomb and b of viscous friction, both in units of current, w of the motor. Mass and inertia do not matter.
A wheel that stands is left out, its |i| is rectified noise. Where several wheels turn at different speeds each also
carries a share of the others' load, which this model does not know: it is what is left.
"""

from __future__ import annotations

import numpy as np
import pytest
from repository import DATA

from youbot_dynamics.identification.least_squares import Fit, Rows, Unknown, least_squares

FOLDER = DATA / "robotino2_brylev" / "one_surface_type"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="data folder absent")

SETTLED = 1.5  # [s] after which the speeds are steady
SLOWEST = 3.0  # [rad/s] of the motor; its speed is told in steps of 2.83 rad/s
RUN = 60.0  # [s] a block of the intervals is one run: what the floor does to a whole run is in them
UNKNOWNS = (
    Unknown("coulomb", "A", low=0.0, resolution=0.02),
    Unknown("viscous", "A s/rad", low=0.0, resolution=0.002),
)


def run_means(floor: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Speeds |w| (m,) [rad/s], currents |i| (m,) [A] and numbers (m,) of their runs: means of each turning wheel."""
    speeds, currents, runs = [], [], []
    for number, path in enumerate(sorted((FOLDER / floor).glob("*.csv"))):
        log = np.genfromtxt(path, delimiter=";", skip_header=3)
        steady = log[1e-3 * log[:, 0] > SETTLED]
        speed, current = np.abs(steady[:, 10:13].mean(axis=0)), steady[:, 13:16].mean(axis=0)
        turns = speed > SLOWEST
        speeds.append(speed[turns])
        currents.append(current[turns])
        runs.append(np.full(np.count_nonzero(turns), number))
    return np.concatenate(speeds), np.concatenate(currents), np.concatenate(runs)


def fitted(speed: np.ndarray, current: np.ndarray, run: np.ndarray) -> Fit:
    """Fit whose blocks are the runs."""
    table = np.column_stack([np.ones_like(speed), speed])
    return least_squares(
        [
            Rows(np.zeros(int(np.sum(run == k))), table[run == k], current[run == k], None, int(k), RUN)
            for k in set(run)
        ],
        UNKNOWNS,
    )


def explained(values: np.ndarray, speed: np.ndarray, current: np.ndarray) -> float:
    """R2 about the mean."""
    left = current - values[0] - values[1] * speed
    return 1.0 - float(left @ left) / float(np.sum((current - current.mean()) ** 2))


@pytest.fixture(scope="module")
def floors() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    return {floor: run_means(f"{floor}_surface") for floor in ("table", "gray")}


def test_the_table_holds_the_wheels_back_less_than_the_gray_floor(floors):
    fits = {name: fitted(*rows) for name, rows in floors.items()}
    for name, (speed, current, run) in floors.items():
        fit = fits[name]
        print(
            f"{name}: {len(set(run))} runs, {speed.min():.0f} to {speed.max():.0f} rad/s,"
            f" {fit.explained:.4f} of the currents' power, R2 about the mean"
            f" {explained(fit.values, speed, current):.3f};"
            f" {[(e.name, round(e.value, 5), np.round(e.interval, 5), e.verdict) for e in fit.estimates]}"
        )
    table, gray = fits["table"], fits["gray"]
    assert table["coulomb"].identified and gray["coulomb"].identified
    assert table["coulomb"].interval[1] < gray["coulomb"].interval[0]
    assert table["viscous"].identified
    # At the speeds both floors have seen, with intervals of the total.
    unknown = (Unknown("total", "A"),)
    for speed in (26.0, 35.0):
        on_table, on_gray = (fit.combination([[1.0, speed]], unknown)[0] for fit in (table, gray))
        print(f"at {speed:g} rad/s: table {on_table.value:.3f} {on_table.interval}, gray {on_gray.value:.3f}")
        assert on_table.identified and on_gray.identified
        assert on_table.interval[1] < on_gray.interval[0]


def test_half_of_the_runs_on_the_table_predict_the_other_half(floors):
    speed, current, run = floors["table"]
    first = run % 2 == 0
    values = fitted(speed[first], current[first], run[first]).values
    held_out = explained(values, speed[~first], current[~first])
    print(f"held-out R2 on the table {held_out:.3f}")
    assert held_out > 0.7


def test_the_gray_floor_shows_next_to_no_viscous_friction(floors):
    """Within the resolution asked for: what varies there is from wheel to wheel, so R2 about the mean is small."""
    speed, current, run = floors["gray"]
    fit = fitted(speed, current, run)
    assert fit["viscous"].interval[1] < 0.003 and fit["viscous"].interval[0] == 0.0
    assert fit.explained > 0.99 and explained(fit.values, speed, current) < 0.2


def test_one_speed_tells_no_coulomb_from_viscous_friction(floors):
    speed, current, run = floors["table"]
    alike = (speed > 24.0) & (speed < 28.0)
    fit = fitted(speed[alike], current[alike], run[alike])
    print([(e.name, e.verdict) for e in fit.estimates])
    assert not fit["viscous"].identified
    assert fit.combination([[1.0, 26.0]], (Unknown("total", "A"),))[0].identified
