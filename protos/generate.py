"""Regenerates `protos/gen` from `protos/*.proto`: `python -m protos.generate [--check]`.

With `--check` nothing is written; the exit code is 1 if the committed code differs from the generated code.
"""

import filecmp
import sys
import tempfile
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
GENERATED = HERE / "gen"


def generate(target: Path) -> None:
    """Writes *_pb2.py, *_pb2.pyi and *_pb2_grpc.py for all .proto files to `target`/protos/gen.

    The virtual path protos/gen makes protoc emit the right imports for that package.
    """
    protoc = import_module("grpc_tools.protoc")
    files = [f"protos/gen/{path.name}" for path in sorted(HERE.glob("*.proto"))]
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    status = protoc.main(["protoc", f"-Iprotos/gen={HERE}", *outputs, *files])
    if status != 0:
        raise SystemExit(f"protoc failed with status {status}")


def main() -> int:
    if "--check" not in sys.argv[1:]:
        generate(HERE.parent)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = sorted((Path(scratch) / "protos" / "gen").iterdir())
        stale = [
            f.name
            for f in fresh
            if not (GENERATED / f.name).exists() or not filecmp.cmp(f, GENERATED / f.name, shallow=False)
        ]
    if stale:
        print(f"out of date: {', '.join(stale)}; run `make protos` and commit the result", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
