#!/usr/bin/env bash
# Drive the digital twin, record, identify, drive again compensated and stabilised, and show the gain.
# Arguments are those of `youbot demo`; --help lists them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "$VENV/bin/youbot" demo "$@"
