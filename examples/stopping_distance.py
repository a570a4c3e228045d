"""How far does my base roll on after its last command? Time-out, delay and braking add up.

`base_controller` brakes 0.5 s after the last command; the driver and its motors act later still. A youBot of the twin
with a dead time of 150 ms is driven forward, and then nobody sends a command any more.

    0.2 m/s: 0.15 m in 0.94 s #######
    0.4 m/s: 0.32 m in 1.10 s ################
    0.6 m/s: 0.52 m in 1.22 s ##########################
    0.8 m/s: 0.74 m in 1.34 s #####################################
    from 0.8 m/s 0.74 m, and 0.44 m with a time-out of 0.1 s instead of 0.5 s
"""

import youbot_dynamics as yd
from youbot_dynamics.control.wheel_commands import BaseDriver, CommanderSettings
from youbot_dynamics.simulation.robot_driver import RobotDriver

SEED, PERIOD, LAST = 0, 0.02, 4.0  # which robot, [s], [s] when the last command is sent
robot = yd.load_robot()


def rolled(speed: float, timeout: float) -> tuple[float, float]:
    """Distance [m] and time [s] from the last command to rest."""
    plant = yd.BaseOnly(yd.load_truth(SEED), robot.driver, SEED)
    driver = RobotDriver(plant, robot.driver, SEED, arm=False)
    controller = BaseDriver(robot, CommanderSettings(command_timeout=timeout))
    begun, rest = 0.0, LAST
    for k in range(500):
        now = k * PERIOD
        driver.advance(now)
        if now <= LAST:
            controller.commander.offer("operator", [speed, 0.0, 0.0], now)
            begun = plant.base.pose[0]
        command = controller.step(now, now)
        driver.command_twist(command.twist, now)
        rest = now if plant.base.twist[0] > 1e-3 else rest
    return plant.base.pose[0] - begun, rest - LAST


for speed in (0.2, 0.4, 0.6, 0.8):
    distance, time = rolled(speed, 0.5)
    print(f"{speed:.1f} m/s: {distance:.2f} m in {time:.2f} s {'#' * round(50 * distance)}")
print(f"from 0.8 m/s {distance:.2f} m, and {rolled(0.8, 0.1)[0]:.2f} m with a time-out of 0.1 s instead of 0.5 s")
