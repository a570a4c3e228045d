"""How the estimates of a fit hang together: a table whose cells are tinted by their correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence

from youbot_dynamics.identification.finding import Correlation
from youbot_dynamics.identification.page.words import NOT_AVAILABLE, listed, number, scroller, significant, text

_STRONG = 0.9  # beyond it the data told a sum or a difference, not each: in bold


def correlation_tables(correlations: Sequence[Correlation]) -> str:
    """One table a fit; "" where there is none."""
    if not correlations:
        return ""
    note = (
        '<p class="note">Estimates that correlate were told from the data less well than their own intervals suggest: '
        "near +1 the data fix their difference, near \u22121 their sum. Blue cells are positive, orange ones negative; "
        "beyond 0.9 the number is bold and framed. The condition number is that of the scaled problem: of the order "
        "of ten is good, beyond a thousand the data hardly tell the unknowns apart.</p>"
    )
    return note + "".join(_table(one) for one in correlations)


def _table(one: Correlation) -> str:
    columns = "".join(f'<th scope="col"><span>{text(name)}</span></th>' for name in one.names)
    rows = "".join(
        f'<tr><th scope="row">{text(name)}</th>{"".join(_cell(v, i == j) for j, v in enumerate(row))}</tr>'
        for i, (name, row) in enumerate(zip(one.names, one.matrix.tolist(), strict=True))
    )
    facts = f"Condition number {significant(one.condition)}"
    facts += f", solved by {text(one.method)}" if one.method else ""
    facts += f"; put at a physical bound: {text(listed(one.bounds))}" if one.bounds else "; no bound was active"
    table = f'<table class="heat"><thead><tr><td></td>{columns}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<h3>{text(one.title)}</h3><p class="note">{facts}.</p>' + scroller(f"Correlation, {one.title}", table)


def _cell(value: float, diagonal: bool) -> str:
    if not math.isfinite(value):
        return f"<td>{NOT_AVAILABLE}</td>"
    if diagonal:
        return "<td>1</td>"
    tint = "positive" if value > 0.0 else "negative"
    kind = f"{tint} strong" if abs(value) > _STRONG else tint
    return f'<td class="{kind}" style="--r:{min(1.0, abs(value)):.2f}">{number(value, 2)}</td>'
