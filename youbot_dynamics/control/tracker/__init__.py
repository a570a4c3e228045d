"""The tracker of the base: PID or LQ feedback about a feed-forward that knows delay, lag and droop."""

from youbot_dynamics.control.tracker._base_lq import LqFeedback, axis_law
from youbot_dynamics.control.tracker._feed_forward import BasePredictor
from youbot_dynamics.control.tracker._pid import Pid, gains_for_delay
from youbot_dynamics.control.tracker._tracker import Tracker, TrackerSettings, TrackerState, compile_tracker

__all__ = [
    "BasePredictor",
    "LqFeedback",
    "Pid",
    "Tracker",
    "TrackerSettings",
    "TrackerState",
    "axis_law",
    "compile_tracker",
    "gains_for_delay",
]
