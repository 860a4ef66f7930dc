#!/usr/bin/env bash
# One guesses: timeout=float("inf") or sys.maxsize means no limit, as it nearly does in other libraries, or is refused.
# What happens: the call fails with DEADLINE_EXCEEDED before it is sent; so does one with 300 years. Ten years are sent,
# but arrive at the server as 27,000 hours, a little over three years. Only None means no limit.
# To a scheduler: a setting "0 or inf: wait for ever" makes every call fail, with the code of a slow server.
# The documentation of timeout says: an optional duration of time in seconds.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check grpcio==1.85.3
timeout 120 "$folder/venv/bin/python" - <<'PY'
import asyncio
import sys
from concurrent import futures

import grpc

print("grpcio", grpc.__version__)
YEAR = 365 * 86400
TIMEOUTS = {"1 hour": 3600, "10 years": 10 * YEAR, "300 years": 300 * YEAR, "sys.maxsize": sys.maxsize, "inf": float("inf")}
calls = []


def remaining(_, context):
    calls.append(context.time_remaining())
    return str(round(context.time_remaining() / 3600)).encode()


def outcome(call, timeout):
    try:
        return call(b"", timeout=timeout).decode() + " h left"
    except grpc.RpcError as error:
        return error.code().name


async def aio_outcome(timeout):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            return (await channel.unary_unary("/demo.Scheduler/Left")(b"", timeout=timeout)).decode() + " h left"
        except grpc.RpcError as error:
            return error.code().name


server = grpc.server(futures.ThreadPoolExecutor(1))
methods = {"Left": grpc.unary_unary_rpc_method_handler(remaining)}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("demo.Scheduler", methods)])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
seen = {}
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    for name, timeout in TIMEOUTS.items():
        seen[name] = outcome(channel.unary_unary("/demo.Scheduler/Left"), timeout)
        also = asyncio.run(aio_outcome(timeout))
        print(f"timeout {name}: expected an answer, seen {seen[name]}; with asyncio {also}")
        if also != seen[name]:
            sys.exit("changed: asyncio differs")
server.stop(None).wait()
print("calls that reached the server:", len(calls))
past = "DEADLINE_EXCEEDED"
described = dict(zip(TIMEOUTS, ["1 h left", "27000 h left", past, past, past]))
sys.exit(0 if seen == described and len(calls) == 4 else "changed")
PY
