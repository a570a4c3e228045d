"""Before and after: paths over the ground, errors over time, the drive in motion, and the lab's table of errors."""

from __future__ import annotations

from youbot_dynamics.identification import comparison
from youbot_dynamics.identification.comparison import FEEDBACK, OPEN_LOOP, PathComparison
from youbot_dynamics.identification.page import drawing, path_plots
from youbot_dynamics.identification.page.animation import animation
from youbot_dynamics.identification.page.error_table import error_table, statistics
from youbot_dynamics.identification.page.words import listed, significant, text

# Row of the lab's table -> name of its line in the plots, and how that is drawn.
_DRIVES = {
    OPEN_LOOP: ("actual (open loop)", drawing.OPEN_LOOP),
    comparison.RESTORED: ("restored", drawing.RESTORED),
    comparison.SIMULATED: ("simulated feedback", drawing.SIMULATED),
    FEEDBACK: ("stabilised (feedback)", drawing.FEEDBACK),
}


def path_article(path: PathComparison, key: str, most: int) -> str:
    """Path, errors over time, animation and the lab's table of one program.

    Args:
        path: its drives.
        key: distinct for each call for one page.
        most: samples a line.
    """
    table = statistics(path)
    drives = {label: _DRIVES.get(label, (label, drawing.COMMANDED)) for label in table}
    lines = [drawing.Line(style, path.actual[label]) for label, (_, style) in drives.items()]
    away = [drawing.Line(style, path.errors(label)) for label, (_, style) in drives.items()]
    rmse = [f"{label} {significant(of_drive.position_rmse)} m" for label, of_drive in table.items()]
    about = f"{path.name}: position RMSE {listed(rmse)}" if rmse else path.name
    over = path_plots.path_plot(
        [*lines, drawing.Line(drawing.COMMANDED, path.desired)],
        label=f"Path over the ground, {about}",
        key=key,
        most=most,
    )
    under = path_plots.error_plot(
        path.time, away, label=f"Errors of X, Y and heading over time, {about}", key=f"{key}e", most=most
    )
    return (
        f"<article><h3>{text(path.name)}</h3>"
        + drawing.legend([("commanded", drawing.COMMANDED), *drives.values()])
        + f'<figure><div class="pair">{over}{under}</div><figcaption>Path over the ground from the dot on, '
        f"and the errors over time; measured by {text(path.truth)}.</figcaption></figure>"
        + animation(path)
        + (error_table(path) if table else "<p>No drive of this program was recorded.</p>")
        + "</article>"
    )
