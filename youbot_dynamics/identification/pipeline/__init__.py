"""From recordings to a result and a report: read, fit stage by stage, judge, compare."""

from youbot_dynamics.identification.pipeline._fleet import fleet_worker
from youbot_dynamics.identification.pipeline._pipeline import Identification, compare, identify

__all__ = [
    "Identification",
    "compare",
    "fleet_worker",
    "identify",
]
