#!/usr/bin/env bash
# Install the package in every supported way, each in a throw-away place, and check from elsewhere that its
# files and programs are found. Arguments choose rows; without any, all run. Exit 1 when a row fails.
# INSTALL_MATRIX_PYTHON names an interpreter that has the dependencies; otherwise .venv is made and used.
set -euo pipefail

ROWS=(wheel target editable editable-no-isolation colcon colcon-symlink)
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)"

chosen=("$@")
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${ROWS[@]}")
for row in "${chosen[@]}"; do
    [[ " ${ROWS[*]} " == *" $row "* ]] || { echo "install_matrix: no row '$row'; rows are: ${ROWS[*]}" >&2; exit 1; }
done

if [[ -n "${INSTALL_MATRIX_PYTHON:-}" ]]; then
    PYTHON="$INSTALL_MATRIX_PYTHON"
else
    source "$HERE/environment.sh"
    PYTHON="$VENV/bin/python"
fi

# A copy of the package on PYTHONPATH, such as a sourced workspace has, would hide what is installed here.
kept=""
IFS=: read -r -a entries <<<"${PYTHONPATH:-}"
for entry in "${entries[@]}"; do
    [[ -d "$entry/youbot_dynamics" ]] || kept+="${kept:+:}$entry"
done
export PYTHONPATH="$kept"

WORK="$(mktemp -d)"
trap 'rm -rf "$WORK"' EXIT
mkdir "$WORK/source" "$WORK/else where"
tar -C "$HERE/.." --exclude=./.git --exclude=./.venv --exclude=./build --exclude=./install --exclude=./log \
    --exclude='*.egg-info' --exclude='__pycache__' --exclude='./.*_cache' --exclude=./demo_output -cf - . \
    | tar -C "$WORK/source" -xf -

packages_of() { "$1" -c 'import site; print(*site.getsitepackages(), sep="\n")'; }

# Make an environment that sees the packages of $PYTHON, but neither its scripts nor its copy of this package.
fresh_environment() {
    "$PYTHON" -m venv --without-pip "$1"
    packages_of "$PYTHON" >"$(packages_of "$1/bin/python" | head -1)/dependencies.pth"
}

pip_of() {
    local environment="$1"
    shift
    "$environment/bin/python" -m pip --disable-pip-version-check --no-input "$@"
}

# Check what was installed, from a folder that has nothing to do with it.
check() {
    local python="$1"
    shift
    (cd "$WORK/else where" && "$python" "$HERE/check_install.py" "$@")
}

row_wheel() {
    fresh_environment "$WORK/wheel"
    pip_of "$WORK/wheel" wheel -qq --no-deps -w "$WORK/dist" "$WORK/source"
    pip_of "$WORK/wheel" install -qq --no-deps "$WORK"/dist/*.whl
    check "$WORK/wheel/bin/python" --package-below "$WORK/wheel" --scripts "$WORK/wheel/bin"
}

row_target() {
    fresh_environment "$WORK/target"
    pip_of "$WORK/target" wheel -qq --no-deps -w "$WORK/dist" "$WORK/source"
    pip_of "$WORK/target" install -qq --no-deps --target "$WORK/read only" "$WORK"/dist/*.whl
    chmod -R a-w "$WORK/read only"
    PYTHONPATH="$WORK/read only" check "$WORK/target/bin/python" \
        --package-below "$WORK/read only" --scripts "$WORK/read only/bin"
    chmod -R u+w "$WORK/read only"
}

row_editable() {
    fresh_environment "$WORK/editable"
    pip_of "$WORK/editable" install -qq --no-deps -e "$WORK/source"
    check "$WORK/editable/bin/python" --package-below "$WORK/source" --scripts "$WORK/editable/bin"
}

row_editable-no-isolation() {
    fresh_environment "$WORK/bare"
    pip_of "$WORK/bare" install -qq 'setuptools>=64' wheel
    pip_of "$WORK/bare" install -qq --no-deps --no-build-isolation -e "$WORK/source"
    check "$WORK/bare/bin/python" --package-below "$WORK/source" --scripts "$WORK/bare/bin"
}

colcon_build() {
    local place="$1" python below
    shift
    python="$(dirname "$(command -v colcon)")/python3"
    mkdir "$place"
    # A prefix of this package that is sourced already would only add a warning to the build.
    (cd "$place" && colcon --log-base log build --base-paths "$WORK/source" "$@" \
        --event-handlers console_direct- console_stderr-) || { cat "$place"/log/latest_build/*/stderr.log; return 1; }
    below="$place/install"
    [[ " $* " == *" --symlink-install "* ]] && below="$place/build"
    (
        set +u
        source "$place/install/local_setup.bash"
        if [[ "$("$python" -V)" == "$("$PYTHON" -V)" ]]; then
            PYTHONPATH="$PYTHONPATH:$(packages_of "$PYTHON" | paste -sd:)"
        fi
        check "$python" --package-below "$below" --scripts "$place/install/youbot_dynamics/lib/youbot_dynamics"
        (cd "$WORK/else where" && [[ "$(command -v youbot)" == "$place/install/"* ]] && youbot --version)
    )
}

row_colcon() { colcon_build "$WORK/plain"; }
row_colcon-symlink() { colcon_build "$WORK/symlink" --symlink-install; }

failed=0
table=""
for row in "${chosen[@]}"; do
    started=$SECONDS
    verdict="passed"
    if [[ "$row" == colcon* ]] && ! command -v colcon >/dev/null; then
        verdict="not available"
    else
        "row_$row" >"$WORK/log" 2>&1 &  # as a condition, the row would run without set -e
        if ! wait $!; then
            verdict="FAILED"
            failed=1
            sed "s/^/[$row] /" "$WORK/log" >&2
        fi
    fi
    table+="$(printf '%-22s %-13s %3d s' "$row" "$verdict" $((SECONDS - started)))"$'\n'
done
printf '%s' "$table"
exit "$failed"
