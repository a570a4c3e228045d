#!/usr/bin/env bash
# Time the package beside Pinocchio, MuJoCo, CasADi and scipy: ratios, goals and bench_results.json.
# Arguments: names of groups or items (none: all), --quick, --json PATH, --list. Exit 1 when a goal was missed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

if ! "$VENV/bin/python" -c 'import casadi, mujoco, pinocchio' 2>/dev/null; then
    say "installing the peers: Pinocchio, MuJoCo, CasADi"
    pins=(-c constraints.txt)
    # The message packages of a sourced ROS are compiled for its numpy: that one must stay.
    [[ $MODE == wheels ]] || pins=("numpy==$("$VENV/bin/python" -c 'import numpy; print(numpy.__version__)')")
    (cd "$ROOT" && "$VENV/bin/python" -m pip install -qq --disable-pip-version-check --no-input \
        -e '.[bench]' "${pins[@]}") || fail "pip could not install the peers; see its message above"
fi
PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}" exec "$VENV/bin/python" -m bench "$@"
