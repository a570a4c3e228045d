#!/usr/bin/env bash
# Run the tests over DDS N times (10 by default), every second run with each core kept busy by a niced program.
# None is run again where it fails. Other arguments go to pytest. Needs the environment that scripts/test.sh makes.
set -euo pipefail
SETUP_EXTRA=test
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

runs="${1:-10}"
shift || true
cd "$ROOT"
burners=()
rest() {
    ((${#burners[@]} == 0)) || kill "${burners[@]}" 2>/dev/null || true
    burners=()
}
trap rest EXIT

failed=0
for ((run = 1; run <= runs; run++)); do
    load=idle
    if ((run % 2 == 0)); then
        load=busy
        for ((core = 0; core < $(nproc); core++)); do
            nice -n 10 "$VENV/bin/python" -c 'while True: pass' &
            burners+=($!)
        done
    fi
    started=$SECONDS
    verdict=passed
    "$VENV/bin/python" -m pytest -q -p no:rerunfailures "${END_OF_A_HANG[@]}" -n "$(nproc)" --maxprocesses 3 --dist loadfile -m "ros and not slow" "$@" \
        || { verdict=FAILED; failed=1; }
    printf '== run %d of %d, %s: %s after %d s\n' "$run" "$runs" "$load" "$verdict" $((SECONDS - started))
    rest
done
exit "$failed"
