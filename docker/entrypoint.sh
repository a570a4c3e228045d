#!/usr/bin/env bash
# Source ROS 2 and the built workspace, then run what was asked for.
set -eo pipefail
source "/opt/ros/$ROS_DISTRO/setup.bash"
source /workspace/install/setup.bash
exec "$@"
