#!/usr/bin/env bash
# Drive the digital twin, record, identify, drive again with the result, and show the improvement.
# Arguments are those of `youbot demo`; --help lists them.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
exec "$VENV/bin/youbot" demo "$@"
