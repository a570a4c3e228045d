#!/usr/bin/env bash
# Changed inputs for every reader of files, by seed: --inputs N, --seed S, --reader NAME, --replay READER/SEED/INDEX.
set -euo pipefail
SETUP_EXTRA=test
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "$VENV/bin/python" -W ignore "$ROOT/test/fuzz/fuzz.py" "$@"
