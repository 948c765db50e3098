"""A stand-in for a trainer: does what its arguments say, in order, with nothing but the standard library."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def tell() -> None:
    """One JSON line with everything a replica can see of its place."""
    print(json.dumps({"severity": "NOTICE", "message": "told", "event": "told", "argv": sys.argv[1:],
                      "cwd": os.getcwd(), "environ": dict(os.environ)}), flush=True)  # fmt: skip


def gcs_root() -> Path:
    return Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"))


def role() -> str:
    task = json.loads(os.environ["CLUSTER_SPEC"])["task"]
    return f"{task['type']}-{task['index']}"


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def main() -> None:
    for word in sys.argv[1:]:
        verb, _, rest = word.partition("=")
        only, at, rest = rest.rpartition("@")
        if at and only != role():
            continue
        match verb:
            case "tell":
                tell()
            case "print":
                print(rest, flush=True)
            case "many":
                sys.stdout.write("".join(f"line {i}\n" for i in range(int(rest))))
                sys.stdout.flush()
            case "complain":
                print(rest, file=sys.stderr, flush=True)
            case "write":
                path = gcs_root() / rest
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(role())
            case "show":
                print(Path(rest).read_text().strip(), flush=True)
            case "wait":
                wait_for(gcs_root() / rest)
            case "exit":
                sys.exit(int(rest))
            case "die":
                os.kill(os.getpid(), int(rest))
            case "die_once":
                mark = gcs_root() / rest.partition(",")[2]
                if not mark.exists():
                    mark.write_text("died")
                    os.kill(os.getpid(), int(rest.partition(",")[0]))
            case "deaf":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "sleep":
                time.sleep(float(rest))
            case _:
                sys.exit(f"unknown verb {word!r}")


if __name__ == "__main__":
    main()
