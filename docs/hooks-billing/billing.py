"""A receiver of hooks that adds up resource-seconds per user. Python's standard library is all that it needs.

    openssl rand -hex 32 > billing.key
    python billing.py --key-file billing.key --database billing.db --port 8080
    curl localhost:8080/usage

Every delivery is stored once, by its deliveryID, and acknowledged after that: a duplicate changes nothing, and what was
acknowledged is not lost. Usage is computed from what is stored, so the order of arrival has no effect on it either.
"""

import argparse
import hashlib
import hmac
import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

MACHINE, RUNNING = "replica", "Running"
PREFIX = "requests."
"""Details such as requests.cpu: "4" say what a replica occupies."""
SINCE = "since"
"""Detail with the time at which the previous state began, if the controller gives it: RFC 3339."""
REPLAY_SECONDS = 300
MAX_BODY = 64 << 10

SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    delivery TEXT PRIMARY KEY, replica TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL,
    starts INTEGER NOT NULL, at REAL NOT NULL, since REAL, sequence INTEGER NOT NULL, requests TEXT NOT NULL
)
"""


def is_genuine(header: str, body: bytes, keys: Iterable[bytes], now: float) -> bool:
    """Whether a body was signed with one of the keys in the last minutes."""
    fields = [part.strip().partition("=") for part in header.split(",")]
    sent = next((value for name, _, value in fields if name == "t"), "")
    if not (sent.isascii() and sent.isdigit() and len(sent) <= 12) or abs(now - int(sent)) > REPLAY_SECONDS:
        return False
    expected = [hmac.new(key, f"{sent}.".encode() + body, hashlib.sha256).hexdigest() for key in keys]
    given = [value for name, _, value in fields if name == "v1"]
    return any(hmac.compare_digest(one.encode(), other.encode()) for one in expected for other in given)


class Ledger:
    """Starts and ends of replicas. `add` may be called from several threads."""

    def __init__(self, database: str) -> None:
        self._lock = Lock()
        self._database = sqlite3.connect(database, check_same_thread=False)
        with self._database:
            self._database.execute(SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, message: dict) -> bool:
        """Store a delivery durably. Returns whether it is new and counts."""
        starts = message["currentState"] == RUNNING
        if message["machine"] != MACHINE or not (starts or message["previousState"] == RUNNING):
            return False
        details = message["details"]
        requests = {key.removeprefix(PREFIX): float(value) for key, value in details.items() if key.startswith(PREFIX)}
        row = (
            message["deliveryID"],
            message["id"],
            message["userID"],
            f"{message['namespace']}/{message['name']}",
            starts,
            seconds(message["currentTime"]),
            seconds(details[SINCE]) if SINCE in details else None,
            message["sequence"],
            json.dumps(requests),
        )
        with self._lock, self._database:  # commits
            return (
                self._database.execute(f"INSERT OR IGNORE INTO events VALUES ({','.join('?' * 9)})", row).rowcount > 0
            )

    def usage(self, now: float) -> dict:
        """Resource-seconds by user and resource until `now`, and the replicas whose start or end is missing.

        An end without a start counts from the time at which the state before it began, if the controller has given
        that. Otherwise it is listed and counts nothing, until the start is delivered after all.
        """
        with self._lock:
            rows = self._database.execute(
                "SELECT replica, user, name, starts, at, since, requests FROM events ORDER BY replica, at, sequence"
            ).fetchall()
        used: dict = defaultdict(lambda: defaultdict(float))
        incomplete = []
        running: dict = {}
        billed: dict = {}

        def add(user: str, requests: str, duration: float) -> None:
            used[user]["seconds"] += duration
            for resource, amount in json.loads(requests).items():
                used[user][resource] += amount * duration

        for replica, user, name, starts, at, since, requests in rows:
            began = running.pop(replica, None)
            if starts:
                if began is not None:
                    incomplete.append({"replica": name, "missing": "end", "started": began[1]})
                running[replica] = user, at, requests
                continue
            if began is not None:
                add(began[0], began[2], at - began[1])
            elif since is not None or replica in billed:
                add(user, requests, at - max(since or 0.0, billed.get(replica, 0.0)))
            else:
                incomplete.append({"replica": name, "missing": "start", "ended": at})
            billed[replica] = at
        for user, at, requests in running.values():
            add(user, requests, max(0.0, now - at))
        return {"users": {user: dict(amounts) for user, amounts in used.items()}, "incomplete": incomplete}


def seconds(text: str) -> float:
    """Seconds since the epoch of a time in RFC 3339."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC).timestamp()


def server(ledger: Ledger, keys: list[bytes], address: tuple[str, int]) -> ThreadingHTTPServer:
    """The HTTP server, not yet running."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > MAX_BODY:
                return self.answer(413, "the body has no length, or is too long")
            body = self.rfile.read(int(length))
            if not is_genuine(self.headers.get("Poseidon-Signature", ""), body, keys, time.time()):
                return self.answer(401, "the signature is missing, wrong or too old")
            try:
                ledger.add(json.loads(body))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                return self.answer(400, f"not a message of a hook: {error!r}")
            except sqlite3.Error as error:  # a 5xx is tried again
                return self.answer(503, str(error))
            return self.answer(200, "")

        def do_GET(self) -> None:
            if self.path != "/usage":
                return self.answer(404, "there is only /usage")
            return self.answer(200, json.dumps(ledger.usage(time.time()), indent=2))

        def answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(address, Handler)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--key-file", type=Path, required=True)
    parser.add_argument("--database", default="billing.db")
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args()
    keys = [line.strip() for line in given.key_file.read_bytes().splitlines() if line.strip()]
    if not keys:
        parser.error(f"{given.key_file} has no key")
    with closing(Ledger(given.database)) as ledger:
        server(ledger, keys, ("0.0.0.0", given.port)).serve_forever()


if __name__ == "__main__":
    main()
