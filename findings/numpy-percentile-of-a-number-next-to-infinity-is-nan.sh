#!/usr/bin/env bash
# One guesses: the 50th percentile of 1, 2, inf is 2, as the median is, and the 75th is inf.
# What happens: both are nan, since interpolation multiplies infinity by zero or subtracts it from itself, even where the
# percentile falls on an element. A runtime warning is all that tells; nanpercentile does the same.
# To a scheduler: "never started" as a wait of infinity is usual in statistics of waits; one such job next to the median
# makes the median nan, and comparisons with nan are false, so that a gate on it does not fire.
# Known as numpy issue 21091 (open); the documentation of percentile does not mention infinity.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check numpy==2.4.6
timeout 120 "$folder/venv/bin/python" -W ignore - <<'PY'
import sys

import numpy as np

print("numpy", np.__version__)
waits = [1, 2, np.inf]
rows = {
    "median": (2, np.median(waits)),
    "50th percentile": (2, np.percentile(waits, 50)),
    "75th percentile": (np.inf, np.percentile(waits, 75)),
    "50th nanpercentile": (2, np.nanpercentile(waits, 50)),
    "50th percentile, method lower": (2, np.percentile(waits, 50, method="lower")),
    "50th percentile of 1, 2, 3": (2, np.percentile([1, 2, 3], 50)),
}
for name, (expected, seen) in rows.items():
    print(f"{name}: expected {expected}, seen {seen}")
wrong = [name for name, (expected, seen) in rows.items() if not seen == expected]
described = ["50th percentile", "75th percentile", "50th nanpercentile"]
sys.exit(0 if wrong == described and all(np.isnan(rows[name][1]) for name in wrong) else "changed")
PY
