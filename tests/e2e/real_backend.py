"""A real etcd with a real kube-apiserver, from the folder that KUBEBUILDER_ASSETS names (the envtest convention)."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from tests.e2e.api import PATIENCE, Api, ApiError, Json
from tests.e2e.backends import Backend, Bind, free_ports
from tests.e2e.processes import Process

_TOKEN = "e2e"
_GATES = (
    "GenericWorkload", "GangScheduling", "WorkloadAwarePreemption", "PodGroupPreemptionPolicy", "DRADeviceTaintRules",
)  # fmt: skip
"""The gates of Kubernetes' PodGroups, and of taint rules for devices; a server has some of them, by its version."""


class Real(Backend):
    """etcd and kube-apiserver."""

    name = "real"

    def __init__(
        self,
        assets: Path,
        folder: Path,
        *,
        authorization: str = "AlwaysAllow",
        flags: Sequence[str] = (),
        watched: str = "",
        watched_group: str = "",
    ) -> None:
        """`flags`: additional ones of the API server. `watched`, `watched_group`: of whom all requests are recorded."""
        super().__init__()
        self._assets, self._folder = assets, folder
        self._flags = ("--authorization-mode", authorization, *flags)
        etcd, peer, self._port = free_ports(3)
        self._etcd_url = f"http://127.0.0.1:{etcd}"
        peer_url = f"http://127.0.0.1:{peer}"
        self._etcd = Process(
            [
                str(assets / "etcd"), "--data-dir", str(folder / "etcd"),
                "--listen-client-urls", self._etcd_url, "--advertise-client-urls", self._etcd_url,
                "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
                "--initial-cluster", f"default={peer_url}", "--unsafe-no-fsync", "--log-level", "warn",
            ],
            folder / "etcd.log",
        )  # fmt: skip
        (folder / "tokens.csv").write_text(f"{_TOKEN},admin,admin,system:masters\n")
        binding = {"level": "Request", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/binding"]}]}
        policy = {
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
            "rules": [
                binding,
                *([{"level": "Metadata", "users": [watched]}] if watched else []),
                *([{"level": "Metadata", "userGroups": [watched_group]}] if watched_group else []),
                {"level": "None"},
            ],
        }  # fmt: skip
        (folder / "audit.yaml").write_text(yaml.safe_dump(policy))
        self._audit = folder / "audit.log"
        self.url = f"https://127.0.0.1:{self._port}"
        self.kubeconfig = folder / "kubeconfig"
        self.certificate = folder / "certs" / "apiserver.crt"
        self.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(self.url, self.certificate, _TOKEN)))
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        self.api = Api(self.url, _TOKEN, ssl.create_default_context(cafile=str(self.certificate)))
        self._await_ready(self.api)

    def _start(self) -> None:
        folder = self._folder
        key = folder / "certs" / "apiserver.key"  # made by the server itself, at its first start
        self._server = Process(
            [
                str(self._assets / "kube-apiserver"), "--etcd-servers", self._etcd_url,
                "--bind-address", "127.0.0.1", "--secure-port", str(self._port), "--advertise-address", "127.0.0.1",
                "--endpoint-reconciler-type", "none", "--cert-dir", str(folder / "certs"),
                "--token-auth-file", str(folder / "tokens.csv"), *self._flags,
                "--service-account-issuer", "https://kubernetes.default.svc",
                "--service-account-key-file", str(key), "--service-account-signing-key-file", str(key),
                "--service-cluster-ip-range", "10.0.0.0/24",
                "--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition",
                "--audit-policy-file", str(folder / "audit.yaml"), "--audit-log-path", str(self._audit),
            ],
            folder / "apiserver.log",
        )  # fmt: skip
        self._server.until_says("Serving securely on")

    def _await_ready(self, api: Api) -> None:
        """Waits for its start-up hooks, which run for some seconds after it listens."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if api("GET", "/readyz") == "ok" and api("GET", "/api/v1/namespaces/default"):
                    return
            except (ApiError, OSError) as error:
                if time.monotonic() > end or self._server.popen.poll() is not None:
                    raise AssertionError(f"{error}\n{self._server.output[-3000:]}") from error
            time.sleep(0.1)  # nothing to watch yet

    def audited(self) -> list[Json]:
        """The requests that the server recorded: binds, and all requests of the watched user or group."""
        whole, _, _ = self._audit.read_text().rpartition("\n") if self._audit.exists() else ("", "", "")
        return [json.loads(line) for line in whole.splitlines()]

    def kubeconfig_with(self, token: str, path: Path) -> Path:
        """Writes a kubeconfig to `path` for a user other than the administrator."""
        path.write_text(yaml.safe_dump(_kubeconfig(self.url, self.certificate, token)))
        return path

    def all_binds(self) -> list[Bind]:
        found = []
        for entry in self.audited():
            if entry["responseStatus"]["code"] == 201 and "requestObject" in entry:
                request = entry["requestObject"]
                uid = request["metadata"].get("uid") or f"{entry['auditID']} (not said)"
                found.append(Bind(uid, entry["objectRef"]["name"], request["target"]["name"]))
        return found

    def rejections(self) -> dict[str, int]:
        return {}

    @contextmanager
    def outage(self) -> Iterator[None]:
        self._server.end(9)
        yield
        self._start()
        self._await_ready(self.api)

    def scheduler(self) -> Process | None:
        """The real kube-scheduler, for pods of `default-scheduler`, if it is in the folder, too."""
        program = self._assets / "kube-scheduler"
        if not program.exists():
            return None
        (port,) = free_ports(1)
        config = str(self.kubeconfig)
        command = [
            str(program), "--kubeconfig", config, "--authentication-kubeconfig", config,
            "--authorization-kubeconfig", config, "--bind-address", "127.0.0.1", "--secure-port", str(port),
            "--leader-elect=false",
        ]  # fmt: skip
        process = Process(command, self._folder / "kube-scheduler.log")
        process.until_says("Serving securely on")
        return process

    def close(self) -> None:
        if hasattr(self, "_server"):
            self._server.end(9)
        self._etcd.end(9)


def gate_flags(assets: Path) -> tuple[str, ...]:
    """Flags with which the API server serves Kubernetes' PodGroups, and every version of what it has; none, if it has
    no such gates."""
    usage = subprocess.run([assets / "kube-apiserver", "--help"], capture_output=True, text=True, check=True).stdout
    gates = [f"{gate}=true" for gate in _GATES if gate in usage]
    return (f"--feature-gates={','.join(gates)}", "--runtime-config=api/alpha=true,api/beta=true") if gates else ()


def _kubeconfig(url: str, certificate: Path, token: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": {"server": url, "certificate-authority": str(certificate)}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "current-context": "real",
    }


def why_not_real() -> str:
    """Why the real backend cannot be used; empty: it can."""
    folder = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not folder:
        return "KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver"
    missing = [name for name in ("etcd", "kube-apiserver") if not (Path(folder) / name).exists()]
    return f"there is no {' and no '.join(missing)} in {folder}" if missing else ""
