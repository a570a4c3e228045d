#!/usr/bin/env bash
# Build the documentation site: build/docs/index.html. A warning, a dead link or a public name without its entry is an error.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

cd "$ROOT"
if ! "$VENV/bin/python" -c 'import hypothesis, myst_parser, pytest, sphinx_rtd_theme' 2>/dev/null; then
    "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || fail "the documentation needs Python 3.11 or newer, as the Sphinx in constraints.txt does"
    say "installing Sphinx"
    pins=(-c constraints.txt)
    # The message packages of a sourced ROS are compiled for its numpy: that one must stay.
    [[ $MODE == wheels ]] || pins=("numpy==$("$VENV/bin/python" -c 'import numpy; print(numpy.__version__)')")
    "$VENV/bin/python" -m pip install -qq --disable-pip-version-check --no-input -e '.[docs]' "${pins[@]}" \
        || fail "pip could not install Sphinx; see its message above"
fi
export PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}"
"$VENV/bin/python" -m sphinx -q -b html -d build/doctrees --fail-on-warning --keep-going docs build/docs
DOCS_SITE="$ROOT/build/docs" "$VENV/bin/python" -m pytest -q test/house/test_site.py
say "open build/docs/index.html"
