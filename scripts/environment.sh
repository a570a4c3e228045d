# Sourced by the other scripts: makes .venv where it is missing or out of date, and a quiet ROS environment.
# Before: SETUP_EXTRA=test asks for what only the tests need; without it .venv has what `youbot` needs, half as much.
# Afterwards: ROOT is the clone, VENV its virtual environment, MODE "wheels" or "sourced".

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"
VENV="$ROOT/.venv"
MODE=wheels
MADE="$VENV/made-by-scripts"   # first thing written into .venv, so that a foreign one is never removed
STAMP="$VENV/complete"         # last thing written; holds what the environment was made from
SETUP_EXTRA="${SETUP_EXTRA:-}"

# For pytest: a test that hangs has failed and the run ends, instead of waiting until somebody stops it.
# shellcheck disable=SC2034  # for the scripts that source this one
END_OF_A_HANG=(-o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --max-worker-restart 1)

say() { printf '[environment] %s\n' "$*" >&2; }
fail() { printf '[environment] error: %s\n' "$*" >&2; exit 1; }

# Print the entries of the colon-separated list $1 that lie in none of the folders of the list $2.
without() {
    local entry folder kept="" entries folders
    IFS=: read -r -a entries <<<"$1"
    IFS=: read -r -a folders <<<"$2"
    for entry in "${entries[@]}"; do
        for folder in "${folders[@]}"; do
            [[ -n "$folder" && "$entry/" == "${folder%/}/"* ]] && continue 2
        done
        # Libraries another environment of ROS wheels has put there.
        [[ -z "$entry" || "$entry" == */ros_*.libs ]] || kept+="${kept:+:}$entry"
    done
    printf '%s' "$kept"
}

export_or_unset() {
    if [[ -n "$2" ]]; then export "$1=$2"; else unset "$1"; fi
}

drop_ros() {
    local prefixes="${AMENT_PREFIX_PATH:-}:${COLCON_PREFIX_PATH:-}:/opt/ros/${ROS_DISTRO:-}" name
    export_or_unset PYTHONPATH "$(without "${PYTHONPATH:-}" "$prefixes")"
    export_or_unset LD_LIBRARY_PATH "$(without "${LD_LIBRARY_PATH:-}" "$prefixes")"
    for name in "${!ROS_@}" "${!AMENT_@}" "${!COLCON_@}"; do unset "$name"; done
}

choose_mode() {
    local distro="${ROS_DISTRO:-}"
    if [[ "$distro" == jazzy || "$distro" == kilted ]]; then
        MODE=sourced
        say "ROS 2 $distro is sourced: using its packages"
        return
    fi
    if [[ -n "$distro" || -n "${AMENT_PREFIX_PATH:-}" ]]; then
        say "ROS environment '${distro:-unnamed}' is sourced, neither jazzy nor kilted: dropping it, using the wheels"
    fi
    drop_ros
    unset RMW_IMPLEMENTATION ROS_LOCALHOST_ONLY
}

# Nothing that runs from here may reach, or be reached by, a robot on the network.
isolate() {
    unset _ROS_WHEELS_BOOTSTRAP_COMPLETE ROS_DISCOVERY_SERVER ROS_STATIC_PEERS CYCLONEDDS_URI
    unset FASTRTPS_DEFAULT_PROFILES_FILE FASTDDS_DEFAULT_PROFILES_FILE
    export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST
    export ROS_DOMAIN_ID=$((1 + $$ % 101))
}

# Set PYTHON to an interpreter that can make the environment.
choose_python() {
    ASKED="${PYTHON:-}"
    PYTHON="${PYTHON:-python3}"
    command -v "$PYTHON" >/dev/null || fail "$PYTHON is missing; install Python 3.10 or newer (apt install python3)"
    if [[ $MODE == sourced ]] && ! "$PYTHON" -c 'import rclpy' 2>/dev/null; then
        PYTHON=/usr/bin/python3  # the one ROS was built for, behind somebody's own python3
        "$PYTHON" -c 'import rclpy' 2>/dev/null \
            || fail "ROS_DISTRO is $ROS_DISTRO but python3 cannot import rclpy; source its setup.bash again"
    fi
    "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
        || fail "$("$PYTHON" --version 2>&1) is too old; install Python 3.10 or newer"
    "$PYTHON" -c 'import venv, ensurepip' 2>/dev/null \
        || fail "Python's venv module is missing; install it (apt install python3-venv)"
}

# Print what the environment depends on, one hash and two lines.
fingerprint() {
    local python="$PYTHON"
    # It keeps its own Python, whichever stands first on PATH by now; only one that is asked for replaces it.
    if [[ -z "$ASKED" ]] && "$VENV/bin/python" -c '' 2>/dev/null; then python="$VENV/bin/python"; fi
    cat setup.py setup.cfg pyproject.toml constraints.txt | "$python" -c \
        'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), *sys.version_info[:2])'
    printf '%s %s\n%s\n' "$MODE" "${ROS_DISTRO:-}" "$VENV"
}

make_environment() {
    local wanted started=$SECONDS
    wanted="$(cd "$ROOT" && fingerprint)"
    if [[ -f "$STAMP" && "$(<"$STAMP")" == "$wanted" && -x "$VENV/bin/python" ]]; then
        if [[ -z "$SETUP_EXTRA" || -e "$VENV/has-$SETUP_EXTRA" ]]; then return; fi
        say "adding to .venv what the tests need"
        add_packages
        return
    fi
    if [[ -e "$VENV" && ! -e "$MADE" ]]; then
        fail "$VENV was not made by these scripts; move it away and run again"
    elif [[ -f "$STAMP" ]]; then
        say ".venv is out of date (setup.py, constraints.txt, Python, ROS or the folder changed): making it anew"
    elif [[ -e "$VENV" ]]; then
        say ".venv is half made (an earlier run was interrupted): making it anew"
    fi
    rm -rf "$VENV"
    mkdir "$VENV"
    : >"$MADE"
    say "making .venv with $("$PYTHON" --version 2>&1) and downloading packages; this takes some minutes"
    if [[ $MODE == sourced ]]; then
        "$PYTHON" -m venv --system-site-packages "$VENV"
    else
        "$PYTHON" -m venv "$VENV"
    fi
    add_packages
    printf '%s' "$wanted" >"$STAMP"
}

add_packages() {
    (cd "$ROOT" && install_packages) || fail "pip could not install the packages; see its message above"
    if [[ -n "$SETUP_EXTRA" ]]; then : >"$VENV/has-$SETUP_EXTRA"; fi
    say ".venv is ready after $((SECONDS - started)) s"
}

install_packages() {
    # Python compiles a module when it is first imported: doing so for all took half of the time.
    local pip=("$VENV/bin/python" -m pip install -qq --disable-pip-version-check --no-input --no-compile)
    if [[ $MODE == wheels ]]; then
        "${pip[@]}" -c constraints.txt -e ".[ros${SETUP_EXTRA:+,$SETUP_EXTRA}]"
        return
    fi
    # The message packages of a sourced ROS are compiled for its numpy: that one must stay.
    local numpy
    numpy="numpy==$("$VENV/bin/python" -c 'import numpy; print(numpy.__version__)')"
    # shellcheck disable=SC2046  # one word a pin
    "${pip[@]}" -e ".[program${SETUP_EXTRA:+,$SETUP_EXTRA}]" "$numpy" \
        $([[ -z "$SETUP_EXTRA" ]] || grep -E '^(ruff|mypy|types-PyYAML)==' constraints.txt | sed 's/;.*//')
}

# Packages are not compiled on installation: without files of bytecode, every start compiles them again, which takes 6 s.
unset PYTHONDONTWRITEBYTECODE

choose_mode
isolate
choose_python
exec 9<"$ROOT"  # the folder itself is the lock: two scripts at once make one environment
if command -v flock >/dev/null; then flock 9; fi
make_environment
exec 9<&-
