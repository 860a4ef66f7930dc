#!/usr/bin/env bash
# One guesses: variables named after default/a-b and default-a/b are two variables; that names clash would be an error.
# What happens: PuLP writes "_" for both "/" and "-", so both are default_a_b. Its default solver then fails with "Error
# while executing" and no word of names; the in-process HiGHS solves the same model; only writeLP names the clash.
# To a scheduler: NAMESPACE/NAME is the natural name of a pod's variable. It fails once two pods happen to be called so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check pulp==3.3.2 highspy==1.16.0 numpy==2.4.6
cd "$folder"
timeout 120 "$folder/venv/bin/python" -W ignore - <<'PY'
import sys

import pulp


def model(*names):
    problem = pulp.LpProblem("placement", pulp.LpMinimize)
    first, second = (pulp.LpVariable(name, 0, 5) for name in names)
    problem += first + 2 * second
    problem += first + second >= 7
    return problem, (first, second)


def outcome(problem, variables, solver):
    try:
        problem.solve(solver)
    except pulp.PulpError as error:
        return f"{type(error).__name__}: {str(error).split('/')[0].strip()} ..."
    return [variable.value() for variable in variables]


def written(problem):
    try:
        problem.writeLP("model.lp")
    except pulp.PulpError as error:
        return f"{type(error).__name__}: {error}"
    return "written"


print("pulp", pulp.__version__)
seen = []
for names in (("default/a-b", "default/a-c"), ("default/a-b", "default-a/b")):
    print(*names, "are named", *(variable.name for variable in model(*names)[1]))
    for name, solver in (("CBC, the default", pulp.PULP_CBC_CMD(msg=False)), ("HiGHS", pulp.HiGHS(msg=False))):
        seen.append(outcome(*model(*names), solver))
        print(f"  {name}: expected [5.0, 2.0], seen {seen[-1]}")
    seen.append(written(model(*names)[0]))
    print(f"  writeLP: seen {seen[-1]}")
both = [5.0, 2.0]
as_described = seen[:3] == [both, both, "written"] and seen[4] == both
as_described &= "Error while executing" in seen[3] and "default_a_b" not in seen[3] and "default_a_b" in seen[5]
sys.exit(0 if as_described else "changed")
PY
