"""Render pages from `templates/` and `assets/`: one layout, one style sheet, one script, no external resources."""

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
    """Return an HTML document; identical bytes for identical values.

    Args:
        template: its name in `templates/`.
        values: its content. Text is escaped for HTML, except the Markup of the plots.

    Raises:
        ResourceError: jinja2 is not installed.
    """
    text = _environment().get_template(template).render(values)
    # File names may hold characters that UTF-8 or HTML cannot.
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
    """Text of a template value without control characters, which a recording may contain."""
    return value if isinstance(value, Markup) else printable(str(value))


def _asset(name: str) -> Markup:
    return Markup((_HERE / "assets" / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of this package


def _digest(name: str) -> str:
    """Hash of a script for the page's content security policy, so that a browser runs only this script."""
    return base64.b64encode(hashlib.sha256(_asset(name).encode("utf-8")).digest()).decode("ascii")
