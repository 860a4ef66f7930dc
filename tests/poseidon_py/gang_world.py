"""Worlds with gangs, and their history on the API server."""

from collections import defaultdict

from benchmarks.cluster.api.binding import evict
from benchmarks.cluster.api.deletion import delete
from benchmarks.cluster.nodes.kubelets import RUN_SECONDS
from benchmarks.cluster.store.kinds import JOBS, NODES, PODS
from tests.poseidon_py import world


def template(cpu="1", *, labels=None, annotations=None, seconds=None, **fields):
    pod_annotations = dict(annotations or {})
    if seconds is not None:
        pod_annotations[RUN_SECONDS] = str(seconds)
    pod = world.template(cpu, restartPolicy="Never", **fields)
    return {"metadata": {"labels": labels or {}, "annotations": pod_annotations}, **pod}


def job(name, size, *, cpu="1", gang=None, job_annotations=None, on_template=False, completions=None, **fields):
    """A Job; `job_annotations`: annotations of the Job instead of its pods."""
    job_annotations = (
        {"poseidon.io/gang": gang} | (job_annotations or {}) if gang is not None else job_annotations or {}
    )
    pods = template(cpu, annotations=job_annotations if on_template else {}, **fields)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {} if on_template else job_annotations},
        "spec": {
            "parallelism": size,
            "completions": size if completions is None else completions,
            "backoffLimit": 20,
            "template": pods,
        },
    }


class World(world.World):
    def create(self, *objects):
        for each in objects:
            self.cluster.create(each)

    def running(self, prefix=""):
        return {n for n, p in self.pods.items() if p["status"].get("phase") == "Running" and n.startswith(prefix)}

    def delete(self, name, namespace="default"):
        """Deletes a pod without grace."""
        delete(self.cluster.api, PODS, namespace, name, {"gracePeriodSeconds": 0})

    def evict(self, name, namespace="default"):
        evict(self.cluster.api, namespace, name, {"metadata": {"name": name}})

    def cordon(self, name):
        """Cordons the node."""
        node = self.cluster.get(NODES, name)
        node["spec"]["unschedulable"] = True
        self.cluster.api.update(NODES, "", name, node)

    def finish(self, name, namespace="default"):
        """The containers of the pod end with success."""
        pod = self.cluster.get(PODS, name, namespace)
        pod["status"]["phase"] = "Succeeded"
        self.cluster.api.update(PODS, namespace, name, pod, "status")

    def jobs(self):
        return {each["metadata"]["name"]: each for each in self.cluster.objects(JOBS)}

    def halves(self, minimum, gang_of=None):
        """Replays the history: for each gang the intervals in which it had bound members, but fewer than its
        minimum, as (gang, from, to); to is None if it ends so. Ended and deleted members no longer count, but a gang
        that was complete once counts as complete until no member is bound."""
        gang_of = gang_of or (lambda name: name.rpartition("-")[0])
        bound, whole, since, found = defaultdict(set), set(), {}, []
        for entry in self.cluster.audit.entries:
            gang = gang_of(entry.name)
            if gang not in minimum:
                continue
            if entry.what == "bind":
                bound[gang].add(entry.uid)
            elif entry.what in ("gone", "finish", "reject", "delete", "evict"):
                bound[gang].discard(entry.uid)
            count = len(bound[gang])
            if count >= minimum[gang]:
                whole.add(gang)
            elif not count:
                whole.discard(gang)
            half = 0 < count < minimum[gang] and gang not in whole
            if half and gang not in since:
                since[gang] = entry.time
            elif not half and gang in since:
                found.append((gang, since.pop(gang), entry.time))
        return found + [(gang, began, None) for gang, began in since.items()]

    def never_half(self, minimum, seconds=15.0, gang_of=None):
        """Whether gangs were partly bound only while their binds were in flight, and none is now."""
        for gang, began, ended in self.halves(minimum, gang_of):
            assert ended is not None, f"{gang} is half bound"
            assert ended - began < seconds, f"{gang} was half bound for {ended - began:.2f} s"
        return True
