#!/usr/bin/env bash
# Check style, types and behaviour. --slow adds the tests marked slow; --changed runs those that the changes since the
# last common revision with main (--changed=REVISION: since that one) can reach; other arguments go to pytest.
# --help makes the environment and shows this.
set -euo pipefail
SETUP_EXTRA=test
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
for argument in "$@"; do
    case "$argument" in
        -h | --help)
            sed -n '2,/^[^#]/s/^# //p' "${BASH_SOURCE[0]}"
            exit
            ;;
    esac
done
"$VENV/bin/youbot" warm-up

speed="not slow"
arguments=()
for argument in "$@"; do
    case "$argument" in
        --slow) speed="slow or not slow" ;;
        --changed | --changed=*)
            base="${argument#--changed}"
            reached="$(cd "$ROOT" && "$VENV/bin/python" test/support/reached_tests.py ${base:+"${base#=}"})"
            [[ $reached == everything ]] || mapfile -t arguments < <(printf '%s\n' "${arguments[@]}" "$reached" | sed '/^$/d')
            ;;
        *) arguments+=("$argument") ;;
    esac
done

summary=""
failed=0
step() {
    local name="$1" started=$SECONDS verdict=passed
    shift
    printf '\n== %s\n' "$name"
    "$@" || { verdict=FAILED; failed=1; }
    summary+="$(printf '%-12s %-7s %4d s' "$name" "$verdict" $((SECONDS - started)))"$'\n'
}

# Arguments may choose tests of one kind only: then none of the other kinds is no failure.
chosen() {
    local code=0
    "$@" "${arguments[@]}" || code=$?
    [[ $code -eq 5 && ${#arguments[@]} -gt 0 ]] || return "$code"
}

# Start a command at low priority beside the steps that follow; `ended` waits for it and shows what it wrote.
beside() {
    local name="$1"
    shift
    nice -n 19 "$@" >"$outputs/$name" 2>&1 &
    processes[$name]=$!
}

ended() {
    local code=0
    wait "${processes[$1]}" || code=$?
    unset "processes[$1]"
    cat "$outputs/$1"
    return "$code"
}

declare -A processes=()   # beside the steps
outputs="$(mktemp -d)"    # what they wrote
trap 'kill "${processes[@]}" 2>/dev/null || true; rm -rf "$outputs"' EXIT
trap 'exit 130' INT

cd "$ROOT"
export OPENBLAS_NUM_THREADS=1  # the workers share the cores: threads of each besides made a fit of 4 s take 400
step "ruff check" "$VENV/bin/python" -m ruff check .
step "ruff format" "$VENV/bin/python" -m ruff format --check .
pytest=("$VENV/bin/python" -m pytest "${END_OF_A_HANG[@]}" --dist loadfile)
# Tests over DDS, and of programs, wait for half of the time: beside them run mypy and the tests that only compute.
beside mypy "$VENV/bin/python" -m mypy
beside computing "${pytest[@]}" -n auto --maxprocesses 4 -m "($speed) and computes" "${arguments[@]}"
# Nodes of a third worker would make those of the others late, which is a fault that they report.
step "pytest ros" chosen "${pytest[@]}" -n "$(nproc)" --maxprocesses 3 -m "($speed) and ros"
# One worker more than processors: some tests wait for programs that they start.
step "pytest" chosen "${pytest[@]}" -n $(($(nproc) + 1)) --maxprocesses 4 -m "($speed) and not ros and not computes"
step "mypy" ended mypy
step "computing" chosen ended computing

printf '\n%s' "$summary"
exit "$failed"
