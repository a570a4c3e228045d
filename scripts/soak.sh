#!/usr/bin/env bash
# Drive a simulated robot with all its nodes for ten minutes: memory, processor time, periods, trajectories given up.
# Arguments are those of scripts/soak.py; --help lists them.
set -euo pipefail
SETUP_EXTRA=test
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
cd "$ROOT"
# In a network that has nothing but the loopback, DDS can run as on a robot, and reaches nobody. See docs/reliability.md.
loopback='ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo && exec "$@"'
alone=(unshare --map-root-user --net bash -c "$loopback" bash)
"${alone[@]}" true 2>/dev/null || alone=()
exec "${alone[@]}" "$VENV/bin/python" scripts/soak.py "$@"
