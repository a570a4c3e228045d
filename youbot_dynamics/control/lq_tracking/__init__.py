"""LQ tracking of a linear system, continuous and discrete (Anderson and Moore 1990; systems 45 to 48)."""

from youbot_dynamics.control.lq_tracking._continuous import TrackingGains, track
from youbot_dynamics.control.lq_tracking._discrete import matrix, track_discrete, weight

__all__ = ["TrackingGains", "matrix", "track", "track_discrete", "weight"]
