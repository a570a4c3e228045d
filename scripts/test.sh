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
# Run a step and note its verdict and time; STARTED is its beginning where it began earlier.
step() {
    local name="$1" started="${STARTED:-$SECONDS}" verdict=passed
    shift
    printf '\n== %s\n' "$name"
    "$@" || { verdict=FAILED; failed=1; }
    summary+="$(printf '%-12s %-7s %4d s' "$name" "$verdict" $((SECONDS - started)))"$'\n'
}

# Arguments may choose tests of one kind only: then none of the other kind is no failure.
none_is_no_failure() {
    local code=0
    "$@" || code=$?
    [[ $code -eq 5 && ${#arguments[@]} -gt 0 ]] || return "$code"
}

plain_tests_end() {
    local code=0
    wait "$plain" || code=$?
    plain=""
    cat "$plain_output"
    return "$code"
}

cd "$ROOT"
export OPENBLAS_NUM_THREADS=1  # the workers share the cores: threads of each besides made a fit of 4 s take 400
step "ruff check" "$VENV/bin/python" -m ruff check .
step "ruff format" "$VENV/bin/python" -m ruff format --check .
step "mypy" "$VENV/bin/python" -m mypy

pytest=("$VENV/bin/python" -m pytest "${END_OF_A_HANG[@]}" "${arguments[@]}" --dist loadfile)
plain_output="$(mktemp)"
plain_started=$SECONDS
nice -n 10 "${pytest[@]}" -n auto --maxprocesses 4 -m "($speed) and not ros" >"$plain_output" 2>&1 &
plain=$!
trap '[[ -z "$plain" ]] || kill "$plain" 2>/dev/null || true; rm -f "$plain_output"' EXIT
# Nodes over DDS wait most of the time: three tests at once, each in a domain of its own, and beside them, at a lower
# priority, the tests without nodes, whose output follows.
step "pytest ros" none_is_no_failure "${pytest[@]}" -n 3 -m "($speed) and ros"
STARTED=$plain_started step "pytest" none_is_no_failure plain_tests_end

printf '\n%s' "$summary"
exit "$failed"
