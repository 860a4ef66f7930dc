#!/usr/bin/env bash
# One guesses: a coefficient of 2**50 is an exact double, so x * 2**50 <= 2**50 with 0 <= x <= 5 has the optimum x = 1.
# What happens: HiGHS refuses matrices with entries of 1e15 and more as an error of the model, and scipy maps that to
# status 2, which its documentation gives as "infeasible", although x = 0 is feasible. Only the text of the message differs.
# To a scheduler: one volume of a pebibyte, counted in bytes, makes "nothing fits" out of the whole round.
# HiGHS documents its option large_matrix_value; scipy has no such option and does not mention the limit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check scipy==1.17.1 numpy==2.4.6
timeout 120 "$folder/venv/bin/python" - <<'PY'
import sys

import scipy
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

print("scipy", scipy.__version__)
seen = {}
for power in (40, 49, 50):
    size = 2.0**power
    lp = linprog([-1], A_ub=[[size]], b_ub=[size], bounds=[(0, 5)])
    mip = milp([-1], integrality=[1], constraints=LinearConstraint([[size]], ub=[size]), bounds=Bounds(0, 5))
    for name, result in (("linprog", lp), ("milp", mip)):
        seen[name, power] = result.status
        print(f"{name}, 2**{power} x <= 2**{power}: expected status 0, x = 1")
        print(f"  seen: status {result.status}, x = {result.x}: {result.message}")
infeasible = linprog([1], A_ub=[[1]], b_ub=[-1], bounds=[(0, 5)])
print("linprog, truly infeasible: status", infeasible.status)
described = {(name, power): 2 if power == 50 else 0 for name in ("linprog", "milp") for power in (40, 49, 50)}
sys.exit(0 if seen == described and infeasible.status == 2 else "changed")
PY
