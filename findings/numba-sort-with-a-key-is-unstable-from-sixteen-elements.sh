#!/usr/bin/env bash
# One guesses: list.sort and sorted are stable, as Python guarantees and everyone relies on; compiled by numba, too.
# What happens: with a key, elements that compare equal keep their order up to 15 elements; from 16 on numba's quicksort
# takes over and mixes them. Tests on short lists therefore pass.
# To a scheduler: "sort by priority, else first come first served" becomes unfair, once it is compiled and the queue long.
# Numba's list of supported Python features names both functions and says nothing of the order of equal elements.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check numba==0.68.1 numpy==2.4.6
timeout 240 "$folder/venv/bin/python" -W ignore - <<'PY'
import sys

import numba

print("numba", numba.__version__)


def by_priority(jobs):
    return sorted(jobs, key=lambda job: job[0])


def in_place(jobs):
    jobs = jobs[:]
    jobs.sort(key=lambda job: job[0])
    return jobs


stable = {}
for function in (by_priority, in_place):
    compiled = numba.njit(function)
    for length in (15, 16, 40):
        queue = [(5, arrival) for arrival in range(length)]
        order = [arrival for _, arrival in compiled(queue)]
        stable[function.__name__, length] = order == list(range(length)) == [job[1] for job in function(queue)]
        print(f"{function.__name__}, {length} jobs of one priority: expected 0, 1, 2, ...; seen {str(order[:6])[1:-1]}, ...")
sys.exit(0 if all(same == (length < 16) for (_, length), same in stable.items()) else "changed")
PY
