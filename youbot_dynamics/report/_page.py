"""Pages out of `templates/` and `assets/`: one layout, one style sheet, one script, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from youbot_dynamics.errors import missing_package, printable
from youbot_dynamics.report import _words
from youbot_dynamics.report._drawing import PALETTE

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent


def page(template: str, **values: object) -> str:
    """A whole HTML document, the same bytes for the same values.

    Args:
        template: its name in `templates/`.
        values: what it shows: text that becomes safe in HTML, but for the Markup of the plots.

    Raises:
        ResourceError: jinja2 is not installed.
    """
    text = _environment().get_template(template).render(values)
    # File names may hold what neither UTF-8 nor HTML can.
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as problem:
        raise missing_package("jinja2", "pages of the report") from problem
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        finalize=_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"asset": _asset, "digest": _digest, "palette": PALETTE}
    filters = (_words.facts, _words.listed, _words.minus, _words.number, _words.sentence, _words.shown)
    environment.filters |= {function.__name__: function for function in (*filters, _words.significant)}
    environment.tests["finite"] = math.isfinite
    return environment


def _text(value: object) -> object:
    """What a template writes: a text from a recording may hold control characters."""
    return value if isinstance(value, Markup) else printable(str(value))


def _asset(name: str) -> Markup:
    return Markup((_HERE / "assets" / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of ours


def _digest(name: str) -> str:
    """What the page's policy calls a script, so that a browser runs this one and no other."""
    return base64.b64encode(hashlib.sha256(_asset(name).encode("utf-8")).digest()).decode("ascii")
