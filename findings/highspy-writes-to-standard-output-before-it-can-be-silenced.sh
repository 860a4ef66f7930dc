#!/usr/bin/env bash
# One guesses: a solver object writes nothing if the first thing that it is told is output_flag=False, or silent().
# What happens: the first Highs() of a process writes two lines to its standard output when it is made, before any option can
# be set, and below Python: contextlib.redirect_stdout does not catch them.
# To a scheduler: a command that prints JSON, and solves with HiGHS on the way, prints two lines first that are not JSON; a
# service whose standard output is a protocol or a log of one format has foreign lines in it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check highspy==1.16.0 numpy==2.4.6
cat >"$folder/solve.py" <<'PY'
import contextlib
import io
import json

import highspy

caught = io.StringIO()
with contextlib.redirect_stdout(caught):
    for _ in range(2):
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.silent()
        solver.addVar(0.0, 1.0)
        solver.changeColCost(0, -1.0)
        solver.run()
print(json.dumps({"version": solver.version(), "objective": solver.getObjectiveValue(), "caught": caught.getvalue()}))
PY
timeout 120 "$folder/venv/bin/python" "$folder/solve.py" >"$folder/out"
echo "expected: one line of JSON; seen:"
cat "$folder/out"
python3 - "$folder/out" <<'PY'
import json
import sys

*foreign, last = open(sys.argv[1]).read().splitlines()
found = json.loads(last)
banner = [line for line in foreign if line.startswith("Running HiGHS 1.16.0")]
as_described = len(banner) == 1 and len(foreign) == 2 and found["caught"] == "" and found["objective"] == -1.0
sys.exit(0 if as_described else "changed")
PY
