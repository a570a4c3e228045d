"""How warm does my motor get, and when is it too hot? Two thermal masses, and a filter without a sensor.

The resistance of the winding grows with its temperature, so there is a current beyond which no temperature is steady.

    at 2.0 A the winding ends 44.5 K, the housing 18.9 K above the air
    beyond 5.18 A no temperature is steady: copper resists more the warmer it is
    winding after 1, 5, 30 min: 51.5 63.0 69.5 degC (air 25)
    standard deviation of the winding then: 14.1 K
    from here to 125 degC at 1.5 times the current: 150 s
"""

import numpy as np

import youbot_dynamics as yd

motor = yd.load_robot().arm.motors()[1]  # joint 2, behind its gear
winding = motor.motor
current = 2.0  # [A], held
rise = winding.steady_state_rise(current)
runaway = winding.runaway_current

heat = yd.MotorHeat(motor, stamp=0.0)  # cold at the start
times = np.arange(10.0, 1810.0, 10.0)  # [s]
temperatures = []
for time in times:
    heat.predict(float(time), current**2)
    temperatures.append(heat.state.winding)
air = winding.ambient_temperature

print(f"at {current} A the winding ends {rise.winding:.1f} K, the housing {rise.housing:.1f} K above the air")
print(f"beyond {runaway:.2f} A no temperature is steady: copper resists more the warmer it is")
minutes = [temperatures[6 * m - 1] for m in (1, 5, 30)]
print(f"winding after 1, 5, 30 min: {' '.join(f'{t:.1f}' for t in minutes)} degC (air {air:.0f})")
print(f"standard deviation of the winding then: {heat.state.winding_deviation:.1f} K")
print(f"from here to 125 degC at 1.5 times the current: {heat.seconds_to(125.0, (1.5 * current) ** 2):.0f} s")
