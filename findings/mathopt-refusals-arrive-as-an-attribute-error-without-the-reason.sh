#!/usr/bin/env bash
# One guesses: a solver of MathOpt that does not support a parameter says which, in the RuntimeError that solve() documents.
# What happens: the conversion of the error fails itself: AttributeError, 'StatusNotOk' object has no attribute
# 'canonical_code'. The reason is neither in its text, nor its cause (suppressed), but in its context alone.
# To a scheduler: a handler of RuntimeError or ValueError that takes the next solver never runs; the log has no parameter.
# or-tools issue 4606 has it for other systems, where it is said to work on Linux.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check ortools==9.15.6755
timeout 120 "$folder/venv/bin/python" - <<'PY'
import sys

import ortools
from ortools.math_opt.python import mathopt

print("ortools", ortools.__version__)
model = mathopt.Model()
model.maximize(model.add_variable(lb=0, ub=1))
as_described = True
for solver, parameters in (
    (mathopt.SolverType.GLOP, mathopt.SolveParameters(cutoff_limit=3)),
    (mathopt.SolverType.CP_SAT, mathopt.SolveParameters(node_limit=3)),
    (mathopt.SolverType.HIGHS, mathopt.SolveParameters(threads=2)),
):
    try:
        seen = mathopt.solve(model, solver, params=parameters).termination.reason
        as_described = False
    except Exception as error:
        seen = f"{type(error).__name__}: {error}"
        reason = str(error.__context__).splitlines()[0]
        as_described &= isinstance(error, AttributeError) and reason not in str(error) and len(reason) > 20
        print(f"{solver.name}: expected RuntimeError or ValueError: {reason[:70]}")
    print(f"  seen {seen}")
sys.exit(0 if as_described else "changed")
PY
