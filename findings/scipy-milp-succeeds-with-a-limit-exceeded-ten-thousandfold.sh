#!/usr/bin/env bash
# One guesses: where milp or linprog reports success, constraints hold up to a tolerance, and slack is limit minus use.
# What happens: coefficients of 1e-9 and less are set to zero, without a warning: 1e-9 x <= 1 does not limit x at all. The
# slack that linprog returns is that of the changed problem, so checking it finds nothing.
# To a scheduler: shares of a large cluster (one pod's millicores over all of them) vanish, and a quota with them.
# HiGHS documents its option small_matrix_value; scipy has no such option and does not mention the limit.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check scipy==1.17.1 numpy==2.4.6
timeout 120 "$folder/venv/bin/python" -W error - <<'PY'
import sys

import scipy
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

print("scipy", scipy.__version__)
MOST = 1e13
as_described = True
for share in (2e-9, 1e-9):
    lp = linprog([-1], A_ub=[[share]], b_ub=[1], bounds=[(0, MOST)])
    mip = milp([-1], integrality=[1], constraints=LinearConstraint([[share]], ub=[1]), bounds=Bounds(0, MOST))
    used = share * lp.x[0], share * mip.x[0]
    print(f"coefficient {share}, limit 1: expected use 1 and slack 0")
    print(f"  seen: linprog {lp.status}, use {used[0]:g}, slack {lp.slack[0]:g}; milp {mip.status}, use {used[1]:g}")
    as_described &= lp.success and mip.success
    if share > 1e-9:
        as_described &= all(abs(use - 1) < 1e-6 for use in used)
    else:
        as_described &= all(use > 9999 for use in used) and lp.slack[0] == 1
sys.exit(0 if as_described else "changed")
PY
