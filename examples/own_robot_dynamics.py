"""How do I compute the dynamics of my own robot? From its URDF: a batch of accelerations and exact derivatives.

The robot has two links; inverse dynamics and differences check the results.

    inverse dynamics gives the torques back: True
    derivatives equal differences: True
    weight held at the shoulder, arm level: 11.772 N m
"""

import numpy as np

import youbot_dynamics as yd

URDF = """
<robot name="two_links">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0 -0.25"/><mass value="2.0"/>
    <inertia ixx="0.04" iyy="0.04" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="lower"><inertial><origin xyz="0 0 -0.2"/><mass value="1.0"/>
    <inertia ixx="0.015" iyy="0.015" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="50" velocity="10"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 -0.5"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="30" velocity="10"/></joint>
</robot>"""

robot = yd.Tree.from_urdf(URDF)
rng = np.random.default_rng(0)
q, v, tau = rng.normal(size=(3, 1000, robot.nv))  # 1000 states [rad], [rad/s], [N m]

accelerations = robot.forward_dynamics(q, v, tau)  # (1000, 2) [rad/s2]
by_q, by_v, by_tau = robot.forward_dynamics_derivatives(q, v, tau)  # (1000, 2, 2) each
back = robot.inverse_dynamics(q, v, accelerations)

step = 1e-6
ahead, behind = (robot.forward_dynamics(q + [side, 0.0], v, tau) for side in (step, -step))
difference = (ahead - behind) / (2.0 * step)
print(f"inverse dynamics gives the torques back: {bool(np.abs(back - tau).max() < 1e-10)}")
print(f"derivatives equal differences: {bool(np.abs(by_q[..., 0] - difference).max() < 1e-4)}")
print(f"weight held at the shoulder, arm level: {robot.gravity_forces([np.pi / 2, 0.0])[0]:.3f} N m")
