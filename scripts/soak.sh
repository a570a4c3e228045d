#!/usr/bin/env bash
# Drive a simulated robot with all its nodes for ten minutes: memory, processor time, periods, trajectories given up.
# Arguments are those of scripts/soak.py; --help lists them.
set -euo pipefail
SETUP_EXTRA=test
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$ROOT"
exec "$VENV/bin/python" scripts/soak.py "$@"
