"""`youbot compare`: what changed between two results of `youbot identify`."""

from __future__ import annotations

from pathlib import Path

from youbot_dynamics.commands._terminal import announce, print_rows
from youbot_dynamics.files import write_atomically
from youbot_dynamics.identification.result_file import read_result
from youbot_dynamics.report import changes_page, changes_shown


def compare_command(before: Path, after: Path, out: Path) -> int:
    """Print what changed and write it to `out`/report.html. The results are folders or their result.json.

    Raises:
        YoubotDynamicsError: a result cannot be read, or the page cannot be written.
    """
    old, new = (read_result(place / "result.json" if place.is_dir() else place) for place in (before, after))
    table = changes_shown(old, new)
    print_rows(f"from {before} to {after}", table)
    for note in table.notes:
        announce(f"note: {note}")
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "report.html", changes_page(old, new, (str(before), str(after))))
    announce(f"wrote {out / 'report.html'}")
    return 0
