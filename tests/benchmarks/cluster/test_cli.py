"""The command: starts, serves, stops; invalid input is one line and exit code 2."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
import yaml

COMMAND = [sys.executable, "-m", "benchmarks.cluster"]


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_stopped(tmp_path, number):
    config = tmp_path / "config"
    arguments = ["--nodes", "2", "--port", "0", "--kubeconfig-out", str(config), "--shape", "cpu=4,gpu=1"]
    arguments += ["--shape", "cpu=8,device:a100-mig=1,device:nic=1", "--device-pool", "fabric=3"]
    arguments += ["--device-versions", "v1beta1,v1beta2"]
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "2 nodes" in process.stdout.readline()
        assert str(config) in process.stdout.readline()
        server = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        with urllib.request.urlopen(f"{server}/api/v1/nodes") as answer:
            assert b'"nvidia.com/gpu":"1"' in answer.read()
        with urllib.request.urlopen(f"{server}/apis/resource.k8s.io") as answer:
            assert b'"preferredVersion":{"groupVersion":"resource.k8s.io/v1beta2"' in answer.read()
        with urllib.request.urlopen(f"{server}/_devices") as answer:
            pools = json.load(answer)["pools"]
        assert [(one["driver"], one["pool"], one["devices"]) for one in pools] == [
            ("gpu.nvidia.com", "node-00001", 19),
            ("dra.net", "node-00001", 1),
            ("fabric.example.com", "fabric", 3),
        ]
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
        assert (process.returncode, out, err) == (0, "", "")


def refused(*arguments: str) -> str:
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.e2e
@pytest.mark.slow
def test_bad_input_is_one_clear_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refused("--port", str(port))
    assert message.startswith(f"error: cannot listen on 127.0.0.1:{port}")
    assert message.count("\n") == 1
    missing = tmp_path / "none" / "config"
    assert refused("--port", "0", "--kubeconfig-out", str(missing)).startswith("error: cannot write the kubeconfig")
    assert "unknown resource 'cpus'" in refused("--shape", "cpus=3")
    assert "is not a run time" in refused("--run-time", "soon")
    assert "unknown devices 'a200': use one of t4, v100" in refused("--shape", "device:a200=1")
    assert "unknown pool 'cloth': use fabric or zone-fabric" in refused("--device-pool", "cloth=1")
    assert "'fabric' is not of the form DEVICES=COUNT" in refused("--device-pool", "fabric")
    assert "no version 'v2' of resource.k8s.io: use v1, v1beta2" in refused("--device-versions", "v1,v2")
