"""Runs pods as a container runtime would, as processes of this machine: the entry point of the image and the arguments,
what is mounted, the account's token, the environment, the user, a root file system that cannot be written to.

The processes have a mount namespace of their own and the network of this machine. Linux alone has these, and some
machines do not permit them: `why_not` says so.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.api import PATIENCE, Api
from tests.e2e.processes import Process
from tests.paths import ROOT

Json = dict[str, Any]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_VENV = Path(sys.executable).parent


def why_not() -> str:
    """Why pods cannot be run here; empty: they can."""
    command = ["unshare", "-m", "unshare", "--user", "--map-user=65532", "--map-group=65532", "true"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return ran.stderr.strip()


def entry_point() -> list[str]:
    """That of the image."""
    found = re.search(r'^ENTRYPOINT \["(\w+)"\]$', (ROOT / "deploy" / "Dockerfile").read_text(), re.M)
    assert found is not None
    return [found[1]]


class PodProcess:
    """One container of a pod, which runs from now on. `api`: of the administrator; `certificate`: of the API server."""

    def __init__(self, api: Api, url: str, certificate: Path, pod: Json, folder: Path) -> None:
        self.pod = pod
        self.name, self.namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._api = api
        self._folder = folder / self.name
        (self._container,) = pod["spec"]["containers"]
        server = urlsplit(url)
        variables = {
            "KUBERNETES_SERVICE_HOST": str(server.hostname),
            "KUBERNETES_SERVICE_PORT": str(server.port),
            "PATH": f"{_VENV}:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "HOSTNAME": self.name,
            **{each["name"]: self._value(each) for each in self._container.get("env", ())},
        }
        script = self._folder / "run.sh"
        self._prepare(certificate)
        script.write_text(self._script(variables))
        self.process = Process(["unshare", "-m", "sh", "-e", str(script)], self._folder / "log")

    def _value(self, variable: Json) -> str:
        """Of an environment variable, which may be a field of the pod's metadata."""
        if "value" in variable:
            return str(variable["value"])
        return str(self.pod["metadata"][variable["valueFrom"]["fieldRef"]["fieldPath"].removeprefix("metadata.")])

    def _prepare(self, certificate: Path) -> None:
        """A folder for each volume, for the account, and a copy of /etc, in which others can be mounted."""
        for name in ("etc", "account", "volumes"):
            (self._folder / name).mkdir(parents=True)
        if self.pod["spec"].get("automountServiceAccountToken", True):
            account = self.pod["spec"]["serviceAccountName"]
            path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{account}/token"
            request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            token = self._api("POST", path, request)["status"]["token"]
            files = {"token": token, "namespace": self.namespace, "ca.crt": certificate.read_text()}
            for name, text in files.items():
                (self._folder / "account" / name).write_text(text)
        for volume in self.pod["spec"].get("volumes", ()):
            place = self._folder / "volumes" / volume["name"]
            place.mkdir()
            if source := volume.get("configMap"):
                found = self._api("GET", f"/api/v1/namespaces/{self.namespace}/configmaps/{source['name']}")
                for name, text in found["data"].items():
                    (place / name).write_text(text)
            else:
                assert volume.get("emptyDir") == {}, f"volume {volume} is not supported"

    def _script(self, variables: dict[str, str]) -> str:
        here = self._folder
        lines = ["mount --make-rprivate /", f"cp -a /etc/. {here}/etc/"]
        mounts = [
            (mount["mountPath"], here / "volumes" / mount["name"], mount.get("readOnly", False))
            for mount in self._container.get("volumeMounts", ())
        ]
        lines += [
            f"mkdir -p {here}/etc/{target.removeprefix('/etc/')}" for target, *_ in mounts if target[:5] == "/etc/"
        ]
        lines += [f"echo 127.0.0.1 poseidon.{self.namespace} >> {here}/etc/hosts", f"mount --bind {here}/etc /etc"]
        lines += ["mount -t tmpfs tmpfs /run", f"mkdir -p {ACCOUNT}", f"mount --bind {here}/account {ACCOUNT}"]
        context = self._container["securityContext"]
        if context["readOnlyRootFilesystem"]:
            lines += [
                "mount -o remount,bind,ro /",
                "mount -o remount,bind,ro /etc",
            ]
        lines += ["mount -o remount,ro /run"]
        command = [*self._container.get("command", entry_point()), *self._container.get("args", ())]
        user = self.pod["spec"]["securityContext"]["runAsUser"]
        as_user = ["unshare", "--user", f"--map-user={user}", f"--map-group={user}", "--", "env", "-i"]
        as_user += [f"{name}={value}" for name, value in variables.items()]
        hides = sorted(mounts, key=lambda mount: here.is_relative_to(mount[0]))  # last: this folder is below it
        for target, source, read_only in hides:
            mode = "ro" if read_only else "rw"
            lines += [f"mount --bind {source} {target}", f"mount -o remount,bind,{mode} {target}"]
        lines += ["cd /", f"exec {shlex.join([*as_user, *command])}"]
        return "\n".join(lines) + "\n"

    def until_ready(self) -> None:
        """Waits until the readiness probe succeeds. Raises AssertionError if the process ends before."""
        probe = self._container["readinessProbe"]["httpGet"]
        (port,) = (each["containerPort"] for each in self._container["ports"] if each["name"] == probe["port"])
        end = time.monotonic() + PATIENCE
        while problem := self._probed(port, probe["path"]):
            assert self.process.popen.poll() is None, self.process.output[-3000:]
            assert time.monotonic() < end, f"{problem}\n{self.process.output[-3000:]}"
            time.sleep(0.1)  # a probe is a question that is repeated

    def _probed(self, port: int, path: str) -> str:
        """Why the probe fails; empty: it succeeds."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
                return ""
        except (urllib.error.URLError, OSError) as error:
            return str(error)

    def finish(self) -> int:
        """Waits for its end, and writes the phase of the pod."""
        code = self.process.popen.wait(PATIENCE)
        phase = {"status": {"phase": "Succeeded" if code == 0 else "Failed"}}
        path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}/status"
        self._api("PATCH", path, phase, "application/merge-patch+json")
        return code
