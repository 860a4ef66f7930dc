"""The name of a process: that of its pod, also where the pod has the network and the host name of its node."""

import socket

from poseidon_py.util.process.instance import instance_name


def test_the_pod_before_the_host():
    assert instance_name({"POD_NAME": "poseidon-0"}) == "poseidon-0"
    assert instance_name({"POD_NAME": ""}) == instance_name({}) == socket.gethostname()
