"""How late is my machine, by dead time or by lag? A log of its commands and its motion shows both, with intervals.

The commands come 50 times a second, the readings at uneven times and with noise.

    true: dead time 180 ms, lag 60 ms
    dead_time: 180.0 ms, 95 % from 175.9 to 185.0 ms, identified
    lag: 59.7 ms, 95 % from 55.4 to 63.2 ms, identified
    effective delay: 239.7 ms, gain 0.971
"""

import numpy as np

import youbot_dynamics as yd

DEAD_TIME, LAG = 0.180, 0.060  # [s] of the machine that is simulated here instead of a log
rng = np.random.default_rng(2)

sent = np.arange(0.0, 40.0, 0.02)  # [s] commands at 50 Hz
command = 0.3 * np.sin(0.9 * sent) + 0.2 * np.sign(np.sin(2.1 * sent))  # [m/s]
fine = np.arange(0.0, 40.0, 1e-3)
held = command[np.clip(np.searchsorted(sent, fine - DEAD_TIME, side="right") - 1, 0, None)]
motion = np.zeros_like(fine)
for k in range(1, len(fine)):
    motion[k] = held[k - 1] + (motion[k - 1] - held[k - 1]) * np.exp(-1e-3 / LAG)
stamps = np.sort(rng.uniform(0.5, 39.5, 1900))  # [s] at uneven times
measured = np.interp(stamps, fine, motion) + 0.005 * rng.normal(size=len(stamps))

(found,) = yd.estimate_delay(sent, command, stamps, measured, model="fopdt")
print(f"true: dead time {1e3 * DEAD_TIME:.0f} ms, lag {1e3 * LAG:.0f} ms")
for part in (found.dead_time, found.lag):
    low, high = part.interval
    print(f"{part.name}: {1e3 * part.value:.1f} ms, 95 % from {1e3 * low:.1f} to {1e3 * high:.1f} ms, {part.verdict}")
print(f"effective delay: {1e3 * found.value:.1f} ms, gain {found.gain:.3f}")
