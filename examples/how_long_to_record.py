"""How long must I record to know the delay of my base to 5 ms? Four times as long halves the interval.

A base with a dead time of 150 ms is commanded and read 20 times a second; its speeds have a noise of 0.02 m/s.

      10 s: 151.7 +- 14.9 ms ##############################
      20 s: 155.1 +-  8.9 ms ##################
      40 s: 147.4 +-  5.9 ms ############
      80 s: 150.3 +-  3.8 ms ########
     160 s: 149.6 +-  2.7 ms #####
    80 s are enough for +-5 ms
"""

import numpy as np

import youbot_dynamics as yd

DELAY, NOISE, WANTED = 0.150, 0.02, 0.005  # [s], [m/s], [s]
rng = np.random.default_rng(5)


def speed(time: np.ndarray) -> np.ndarray:
    """Commanded speed [m/s]: it changes all the time, and never repeats."""
    return (
        0.2 * np.sin(0.9 * time)
        + 0.15 * np.sin(2.3 * time + 1.0)
        + 0.1 * np.sin(0.37 * time + 2.0 * np.sin(0.05 * time))
    )


enough = 0
for duration in (10, 20, 40, 80, 160):
    sent = np.arange(0.0, duration, 0.05)
    read = sent + 0.02
    (found,) = yd.estimate_delay(
        sent, speed(sent), read, speed(read - 0.025 - DELAY) + NOISE * rng.normal(size=len(read))
    )
    half = 0.5 * (found.interval[1] - found.interval[0])
    print(f"{duration:4d} s: {1e3 * found.value:.1f} +- {1e3 * half:4.1f} ms {'#' * round(2e3 * half)}")
    enough = enough or duration * (half <= WANTED)
print(f"{enough} s are enough for +-{1e3 * WANTED:.0f} ms")
