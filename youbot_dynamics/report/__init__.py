"""Reports of an identification, a demo or a replay: one HTML file each, which needs no network.

Python modules choose the content, `templates/` hold the layout, `assets/` style and script, `_drawing.PALETTE` the
colours.
"""

from youbot_dynamics.report._answer import told, verdict_tables
from youbot_dynamics.report._changes import changes_page, changes_shown
from youbot_dynamics.report._identification import reveal, write_outputs
from youbot_dynamics.report._replay import JOINT_COLUMNS, joint_cells, replay_page
from youbot_dynamics.report._words import Rows

__all__ = [
    "JOINT_COLUMNS",
    "Rows",
    "changes_page",
    "changes_shown",
    "joint_cells",
    "replay_page",
    "reveal",
    "told",
    "verdict_tables",
    "write_outputs",
]
