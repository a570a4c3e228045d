#!/usr/bin/env bash
# Check style, types and behaviour. --slow adds the tests marked slow; other arguments go to pytest.
set -euo pipefail
SETUP_EXTRA=test
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
"$VENV/bin/youbot" warm-up

speed="not slow"
arguments=()
for argument in "$@"; do
    case "$argument" in
        --slow) speed="slow or not slow" ;;
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

# Arguments may choose tests of one kind only: then none of the other kind is no failure.
chosen() {
    local code=0
    "$VENV/bin/python" -m pytest "${END_OF_A_HANG[@]}" "$@" "${arguments[@]}" || code=$?
    [[ $code -eq 5 && ${#arguments[@]} -gt 0 ]] || return "$code"
}

cd "$ROOT"
export OPENBLAS_NUM_THREADS=1  # the workers share the cores: threads of each besides made a fit of 4 s take 400
step "ruff check" "$VENV/bin/python" -m ruff check .
step "ruff format" "$VENV/bin/python" -m ruff format --check .
step "mypy" "$VENV/bin/python" -m mypy
# One worker more than processors: some tests wait for programs that they start.
step "pytest" chosen -n $(($(nproc) + 1)) --maxprocesses 4 --dist loadfile -m "($speed) and not ros"
# Nodes over DDS wait most of the time: three at once, each in a domain of its own.
step "pytest ros" chosen -n 3 --dist loadfile -m "($speed) and ros"

printf '\n%s' "$summary"
exit "$failed"
