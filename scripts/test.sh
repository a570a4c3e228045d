#!/usr/bin/env bash
# Check style, types and behaviour. --slow adds the tests marked slow; other arguments go to pytest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

selection=(-m "not slow")
arguments=()
for argument in "$@"; do
    case "$argument" in
        --slow) selection=() ;;
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

cd "$ROOT"
step "ruff check" "$VENV/bin/python" -m ruff check .
step "ruff format" "$VENV/bin/python" -m ruff format --check .
step "mypy" "$VENV/bin/python" -m mypy
step "pytest" "$VENV/bin/python" -m pytest "${selection[@]}" "${arguments[@]}"

printf '\n%s' "$summary"
exit "$failed"
