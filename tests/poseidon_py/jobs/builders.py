"""Jobs, replicas and worlds for the tests of decisions."""

import json
from typing import Any

from msgspec import Raw

from poseidon_py.jobs.rules.machines import JobPhase, ReplicaState
from poseidon_py.jobs.rules.replicas import Replica
from poseidon_py.jobs.rules.spec import read_spec
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.rules.world import World

R = ReplicaState
NOW = 1_000_000.0


def template(**spec):
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], **spec}}


def task(name="w", replicas=2, **fields):
    return {"name": name, "replicas": replicas, "template": template(), **fields}


def job(*tasks, annotations=None, **fields):
    """A valid specification of a job called `j`."""
    body = {"tasks": list(tasks) or [task()], **fields}
    texts = {name: text if isinstance(text, str) else json.dumps(text) for name, text in (annotations or {}).items()}
    return read_spec("j", Raw(json.dumps(body).encode()), texts)


def policy(action, *events, **fields):
    return {"action": action, **({"events": list(events)} if events else {}), **fields}


def replica(index=0, phase=R.RUNNING, task="w", uid="", **fields):
    values: dict[str, Any] = {"version": "1", "job_version": 0, "deleting": False, "created": NOW - 100} | fields
    name = f"j-{task}-{index}"
    return Replica("ns", name, uid or f"uid-{name}", task=task, index=index, phase=phase, **values)


def status(phase=JobPhase.RUNNING, **fields):
    return JobStatus(phase, changed=NOW - 50, **fields)


def world(spec, phase=JobPhase.RUNNING, *replicas, now=NOW, signal=None, evictions=(), **fields):
    return World(spec, status(phase, **fields), replicas, tuple(evictions), signal, now=now)
