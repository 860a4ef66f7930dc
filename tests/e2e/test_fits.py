"""`poseidon fits`: what it says of a manifest is what happens when that is applied."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from tests.e2e.api import Json
from tests.e2e.backends import Backend
from tests.e2e.objects import node, pod
from tests.e2e.processes import POSEIDON, Scheduler, run

LIGHT = "pod-group.scheduling.x-k8s.io"


def gang(name: str, count: int, **spec: Any) -> list[Json]:
    labels = {f"{LIGHT}/name": name, f"{LIGHT}/min-available": str(count)}
    return [pod(f"{name}-{at}", metadata={"labels": labels}, **spec) for at in range(count)]


def ask(scheduler: Scheduler, folder: Path, items: list[Json], *flags: str) -> CompletedProcess[str]:
    file = folder / "manifest.yaml"
    file.write_text(yaml.safe_dump_all(items))
    return run(*POSEIDON, "fits", str(file), "--address", scheduler.address, *flags)


def test_a_gang_is_placed_where_it_was_said_to_fit(backend: Backend, scheduler: Scheduler, tmp_path: Path) -> None:
    backend.create(node("a", cpu="4"), node("b", cpu="2"), pod("other", cpu="1"))
    backend.until_bound(1, "other")
    backend.until_seen_by(scheduler)
    fitting = gang("g", 2, cpu="2")
    answer = ask(scheduler, tmp_path, fitting, "--json")
    assert answer.returncode == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert (found["fits"], found["pods"], found["minimum"], found["gang"]) == (True, 2, 2, "pod-group labels")
    announced = sorted(each["node"] for each in found["places"] for _ in range(each["count"]))
    assert len(backend.pods.objects) == 1  # nothing was created
    backend.create(*fitting)
    assert sorted(backend.until_bound(2, "g-").values()) == announced


def test_what_does_not_fit_has_reasons_and_exit_code_1(backend: Backend, scheduler: Scheduler, tmp_path: Path) -> None:
    backend.create(node("a", cpu="4"), node("b", cpu="2"))
    backend.until_seen_by(scheduler)
    answer = ask(scheduler, tmp_path, gang("g", 4, cpu="2"))
    assert answer.returncode == 1
    assert "does not fit: of 4 pods 4 are needed together (a gang by pod-group labels), at most 3 fit" in answer.stdout
    assert "4 pods would wait: 0/2 nodes are available: gang the group needs 4 members placed together" in " ".join(
        answer.stdout.split()
    )
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"replicas": 4, "template": {"spec": pod("x", cpu="2")["spec"]}},
    }
    answer = ask(scheduler, tmp_path, [deployment])
    assert answer.returncode == 1
    assert answer.stdout.startswith("does not fit: 3 of 4 pods would be placed")
    assert ask(scheduler, tmp_path, [deployment], "--minimum", "3").returncode == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: [", "manifest.yaml is not YAML"),
        ("{kind: Pod, apiVersion: v1, metadata: {name: p}}", "Pod default/p: spec: is missing; give it"),
        ("", "the manifest: no pods; give a Pod"),
        ("{kind: Pod, when: 2026-01-01}", "has a value that is not JSON"),
    ],
)
def test_errors_have_exit_code_2(backend: Backend, scheduler: Scheduler, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(text)
    answer = run(*POSEIDON, "fits", str(file), "--address", scheduler.address)
    assert answer.returncode == 2
    assert says in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_without_a_scheduler_there_is_no_answer(backend: Backend, tmp_path: Path) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump(pod("p")))
    answer = run(*POSEIDON, "fits", str(file), "--address", "127.0.0.1:9")
    assert answer.returncode == 2
    assert "no scheduler at 127.0.0.1:9" in answer.stderr
