"""The address of the API server and the credentials that a kubelet gives a pod.

They are two variables and three files, so the `kubernetes` package is not imported for them: it takes a quarter of the
memory of a bridge.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.request import getproxies, proxy_bypass

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CERTIFICATES = "ca.crt"


class ServiceAccountError(Exception):
    """This process is in no pod, or its credentials cannot be read; the message says what is missing."""


def server(environment: Mapping[str, str] = os.environ) -> str:
    """The URL of the API server. Raises ServiceAccountError."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ServiceAccountError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def token() -> str:
    """The token as it is now; a kubelet writes a new one before it expires. Raises ServiceAccountError."""
    file = FOLDER / "token"
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceAccountError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not text:
        raise ServiceAccountError(f"{file} is empty")
    return text


def namespace() -> str:
    """Of the pod; "default" if it is not told."""
    file = FOLDER / "namespace"
    return file.read_text(encoding="utf-8").strip() if file.exists() else "default"


def proxy(host: str) -> str | None:
    """By $HTTPS_PROXY and $NO_PROXY."""
    return None if proxy_bypass(host) else getproxies().get("https")
