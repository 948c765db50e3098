"""TensorFlow's gs:// through the gateway against google-cloud-storage straight at the service, in one run."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from trainstack.gateway.authority import Authority  # noqa: E402  # needs the line above
from trainstack.gateway.identity import WorkloadIdentities  # noqa: E402
from trainstack.gateway.proxy import Backend, Gateway  # noqa: E402  # needs the line above
from trainstack.http import in_thread, serving  # noqa: E402
from trainstack.iam.principals import Principal, Tokens  # noqa: E402
from trainstack.storage import Storage  # noqa: E402

FILES, SIZE = 100, 100_000_000
LEAST_SHARE = 0.25
DIRECT = f"""
import json, time
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
client = storage.Client(project="p", credentials=AnonymousCredentials())
bucket = client.create_bucket("direct-bucket")
began = time.perf_counter()
for number in range({FILES}):
    bucket.blob(f"small/{{number}}").upload_from_string("x")
    bucket.blob(f"small/{{number}}").download_as_bytes()
small = time.perf_counter() - began
began = time.perf_counter()
bucket.blob("large").upload_from_string(b"x" * {SIZE})
bucket.blob("large").download_as_bytes()
print(json.dumps([small, time.perf_counter() - began]))
"""
TENSORFLOW = f"""
import json, time
import tensorflow as tf
from google.cloud import storage
storage.Client().create_bucket("tensorflow-bucket")
def write_and_read(path, content):
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(content)
    with tf.io.gfile.GFile(path, "rb") as file:
        assert len(file.read()) == len(content)
began = time.perf_counter()
for number in range({FILES}):
    write_and_read(f"gs://tensorflow-bucket/small/{{number}}", b"x")
small = time.perf_counter() - began
began = time.perf_counter()
write_and_read("gs://tensorflow-bucket/large", b"x" * {SIZE})
print(json.dumps([small, time.perf_counter() - began]))
"""


def main() -> int:
    """0 when both rates through the gateway are at least a quarter of the direct ones."""
    with tempfile.TemporaryDirectory() as folder, in_thread(lambda: _running(Path(folder))) as variables:
        sides = [_measured(DIRECT, variables), _measured(TENSORFLOW, variables)]
    print(f"{'':28}{'direct':>10}{'gateway':>10}{'share':>8}   at least {LEAST_SHARE}")
    shares = []
    for what, amount, *seconds in (
        ("small files a second", FILES, sides[0][0], sides[1][0]),
        ("MB a second of a large one", SIZE / 1e6, sides[0][1], sides[1][1]),
    ):
        direct, through = (amount / each for each in seconds)
        shares.append(through / direct)
        print(f"{what:28}{direct:>10.1f}{through:>10.1f}{shares[-1]:>8.2f}")
    return 0 if min(shares) >= LEAST_SHARE else 1


@contextlib.asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[Mapping[str, str]]:
    """A replica's variables, and the address of the service behind its gateway."""
    tokens, authority = Tokens(), Authority(folder / "gateway")
    async with serving(Storage(dir=folder / "storage", tokens=tokens)) as url:
        gateway = Gateway(authority=authority, tokens=tokens)
        gateway.backends["storage"] = Backend(http=int(url.rpartition(":")[2]))
        await gateway.start()
        identities = WorkloadIdentities(
            tokens=tokens,
            project_id="p",
            project_number="1",
            gateway_port=gateway.port,
            trust=authority.trust,
        )
        identity = await identities.issue(
            Principal(kind="replica", name="bench", email="a@p"), zone="us-central1-a"
        )
        try:
            yield {**identity.variables, "DIRECT": url}
        finally:
            await identities.revoke(identity)
            await gateway.stop()


def _measured(program: str, variables: Mapping[str, str]) -> tuple[float, float]:
    """Seconds for the small files and for the large one."""
    environment = {"PATH": os.environ["PATH"], "TF_CPP_MIN_LOG_LEVEL": "2", **variables}
    if program is DIRECT:
        environment["STORAGE_EMULATOR_HOST"] = variables["DIRECT"]
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    small, large = json.loads(done.stdout)
    return small, large


if __name__ == "__main__":
    sys.exit(main())
