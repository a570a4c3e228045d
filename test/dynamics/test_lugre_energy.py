"""LuGre friction dissipates: where it does, where it would not, and MuJoCo's dcmotor as an independent opinion."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from youbot_dynamics.dynamics.lugre import LuGre
from youbot_dynamics.dynamics.lugre import _bristle as bristle
from youbot_dynamics.errors import ModelError

PLAIN = LuGre(coulomb=1.0, viscous=0.1, sigma0=1e4, sigma1=60.0)
STRIBECK = LuGre(coulomb=1.0, viscous=0.5, sigma0=1e4, sigma1=1.0, static=1.5, stribeck_speed=0.05)
TIMES = np.arange(0.0, 1.0, 1e-4)
TRAJECTORIES = {
    "swing": 0.5 * np.cos(2 * np.pi * TIMES),
    "ramp": 4.0 * TIMES - 2.0,
    "creep": 1e-3 * np.sin(2 * np.pi * 3 * TIMES),
    "shake": 0.8 * np.sin(2 * np.pi * 40 * TIMES),
    "multi-sine": 0.3 * np.sin(8.0 * TIMES) + 0.2 * np.cos(45.0 * TIMES) + 0.1 * np.sin(160.0 * TIMES),
    "random": np.cumsum(np.random.default_rng(6).normal(size=len(TIMES))) * 0.02,
}


@pytest.mark.parametrize("friction", [PLAIN, STRIBECK], ids=["plain", "stribeck"])
@pytest.mark.parametrize("name", TRAJECTORIES)
def test_energy_supplied_less_energy_stored_never_falls(friction: LuGre, name: str) -> None:
    """Energy balance over time, by quadrature of the supplied power alone; and the power of heat at each sample."""
    speeds = TRAJECTORIES[name]
    z = friction.follow_speeds(-0.9 * friction.reach, speeds, 1e-4)
    assert np.min(friction.dissipation(z, speeds)) >= 0.0
    supplied = np.concatenate(([0.0], np.cumsum(np.diff(TIMES) * _mean(speeds * friction.torque(z, speeds)))))
    stored = 0.5 * friction.sigma0 * z**2
    heat = supplied - (stored - stored[0])
    coarse = 1e-3 * heat[-1]  # of the quadrature
    assert np.min(np.diff(heat[::100])) > -coarse
    assert heat[-1] > 0.0
    assert heat[-1] == pytest.approx(float(np.sum(np.diff(TIMES) * _mean(friction.dissipation(z, speeds)))), rel=0.02)


def _mean(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (samples[1:] + samples[:-1])


def test_the_heat_is_that_of_the_formula_of_system_10() -> None:
    v, zeta = np.meshgrid(np.linspace(-3.0, 3.0, 61), np.linspace(-1.0, 1.0, 41))
    formula = np.abs(v) * zeta**2 + 60.0 * v**2 * (1.0 - zeta * np.sign(v)) + 0.1 * v**2
    assert PLAIN.dissipation(zeta * 1e-4, v) == pytest.approx(formula, rel=1e-12, abs=1e-14)
    assert np.min(formula) >= 0.0


def test_beyond_the_clamp_friction_would_supply_energy() -> None:
    """|z| = 3 reach at 2 rad/s; the clamp brings it back to where it cannot."""
    assert PLAIN.dissipation(3e-4, 2.0) < -400.0
    assert PLAIN.clamp(3e-4) == pytest.approx(PLAIN.reach) == 1e-4
    assert PLAIN.dissipation(PLAIN.clamp(3e-4), 2.0) > 0.0
    assert PLAIN.clamp(-0.4e-4) == -0.4e-4


def test_with_a_stribeck_curve_viscous_friction_must_pay_for_the_rise() -> None:
    """The bound viscous >= sigma1 (static - coulomb) / coulomb is sharp: 0.9 of it fails, all of it does not."""
    coulomb, _, sigma0, sigma1, static, stribeck_speed = STRIBECK.constants
    bound = sigma1 * (static - coulomb) / coulomb
    speeds = np.geomspace(1e-3, 1e4, 400)

    def least(viscous: float) -> float:
        constants = (coulomb, viscous, sigma0, sigma1, static, stribeck_speed)
        shares = np.linspace(-1.0, 1.0, 21)
        powers = (bristle.dissipated_power(s * static / sigma0, v, constants) / v**2 for v in speeds for s in shares)
        return min(powers)

    assert least(0.9 * bound) < -0.04 * bound
    assert 0.0 <= least(bound) < 1e-3 * bound
    dataclasses.replace(STRIBECK, viscous=bound)
    with pytest.raises(ModelError, match=r"LuGre viscous: got 0.45; expected at least sigma1 .* = 0.5 \[N m s/rad\]"):
        dataclasses.replace(STRIBECK, viscous=0.9 * bound)


MOTOR = """
<mujoco>
  <option timestep="{dt}" gravity="0 0 0"/>
  <worldbody><body>
    <joint name="joint" type="hinge" axis="0 0 1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1e9 1e9 1e9"/>
  </body></worldbody>
  <actuator><dcmotor joint="joint" motorconst="0.8" resistance="2" lugre="{lugre}" input="none"/></actuator>
</mujoco>
"""


def by_mujoco(lugre: str, speeds: NDArray[np.float64], dt: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bristle and friction torque of MuJoCo's dcmotor at the start of each step, the speed held over the step.

    lugre = "sigma0 sigma1 coulomb static stribeck_speed". Its back-EMF with shorted terminals is our viscous friction,
    K^2 / R = 0.32 N m s/rad, and its force is the negative of our torque.
    """
    mujoco = pytest.importorskip("mujoco", reason="mujoco is not installed")
    model = mujoco.MjModel.from_xml_string(MOTOR.format(lugre=lugre, dt=dt))
    data = mujoco.MjData(model)
    bristles, torques = [], []
    for v in speeds:
        data.qvel[0] = v
        mujoco.mj_forward(model, data)
        bristles.append(data.act[0])
        torques.append(-data.actuator_force[0])
        mujoco.mj_step(model, data)
    return np.array(bristles), np.array(torques)


@pytest.mark.parametrize("sigma0", [1e3, 1e5])
def test_mujoco_has_the_same_bristle_and_torque(sigma0: float) -> None:
    """Held speeds, Stribeck curve: its law is ours."""
    friction = LuGre(0.5, 0.8**2 / 2.0, sigma0, 0.7, 0.7, 0.1)
    speeds = 0.3 * np.cos(2 * np.pi * 7 * np.arange(0.0, 0.3, 1e-3))
    bristles, torques = by_mujoco(f"{sigma0} 0.7 0.5 0.7 0.1", speeds, 1e-3)
    z, ours = 0.0, []
    for v in speeds:
        ours.append(z)
        z = friction.advance(z, v, v, 1e-3)
    assert sigma0 * np.max(np.abs(bristles - ours)) <= 1e-12
    assert np.max(np.abs(torques - friction.torque(np.array(ours), speeds))) <= 1e-12 * np.max(np.abs(torques))


def test_mujoco_needs_small_steps_where_the_speed_changes() -> None:
    """MuJoCo holds the speed over a step: it comes to our torque as its step shrinks, with first order."""
    friction = LuGre(0.5, 0.8**2 / 2.0, 1e4, 0.7)
    off = {}
    for dt in (1e-3, 1e-4):
        speeds = 0.3 * np.cos(2 * np.pi * 2 * np.arange(0.0, 0.2, dt))
        bristles, torques = by_mujoco("1e4 0.7 0.5", speeds, dt)
        ours = friction.torque(friction.follow_speeds(0.0, speeds, dt), speeds)
        off[dt] = float(np.sqrt(np.mean((torques - ours) ** 2)))
    assert off[1e-3] / off[1e-4] == pytest.approx(10.0, rel=0.35)
    assert math.isfinite(off[1e-3])
