#!/usr/bin/env bash
# One guesses: a client gets the code that the server aborts with; details that are too long are cut, if anything.
# What happens: the details travel in a header. From 16 KiB on (above 8 KiB by chance) the client discards the code with it
# and reports RESOURCE_EXHAUSTED, the code of overload. Letters outside ASCII are percent-encoded: 3,000 of them are enough.
# To a scheduler: a refusal that lists why each node fails (FAILED_PRECONDITION, not to be retried) arrives as one to retry.
# The client's option grpc.max_metadata_size raises the limit; it speaks of metadata, not of codes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -qq --disable-pip-version-check grpcio==1.85.3
timeout 120 "$folder/venv/bin/python" - <<'PY'
import sys
from concurrent import futures

import grpc

print("grpcio", grpc.__version__)

DETAILS = {"1,000 letters": "x" * 1000, "17,000 letters": "x" * 17000, "3,000 umlauts": "\u00fc" * 3000}


def refuse(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, DETAILS[request.decode()])


server = grpc.server(futures.ThreadPoolExecutor(1))
methods = {"Place": grpc.unary_unary_rpc_method_handler(refuse)}
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("demo.Scheduler", methods)])
port = server.add_insecure_port("127.0.0.1:0")
server.start()

seen = {}
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    for name in DETAILS:
        try:
            channel.unary_unary("/demo.Scheduler/Place")(name.encode(), timeout=20)
        except grpc.RpcError as error:
            seen[name] = error.code().name
            print(f"{name}: expected FAILED_PRECONDITION, seen {error.code().name}: {error.details()[:75]}")
server.stop(None).wait()
described = dict(zip(DETAILS, ["FAILED_PRECONDITION", "RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED"]))
sys.exit(0 if seen == described else "changed")
PY
