"""Storage clients that are not Google's Python library, with the environment of a replica: each writes and reads objects.

TensorFlow is in test_clients.py.
"""

import httpx
import pytest

from .conftest import Replica, said

pytestmark = pytest.mark.slow
OPENING = """
import json, os
SMALL, LARGE, CHUNK = b"\\x80{}", os.urandom(17 << 20), 1 << 20
def chunks(content):
    return [content[start:start + CHUNK] for start in range(0, max(len(content), 1), CHUNK)]
"""
WRITTEN_BY = {
    "gcsfs": """
        import gcsfs
        files = gcsfs.GCSFileSystem()
        def write(name, content):
            with files.open(BUCKET + name, "wb", block_size=5 << 20) as file:
                for chunk in chunks(content):
                    file.write(chunk)
        def read(name):
            return files.cat(BUCKET + name)
        def listed():
            return files.ls(BUCKET)
        def remove():
            files.rm(BUCKET, recursive=True)
        files.touch(BUCKET + "touched")
        assert files.info(BUCKET + "touched")["size"] == 0
        """,
    "pyarrow": """
        from pyarrow import fs
        files = fs.GcsFileSystem()
        def write(name, content):
            with files.open_output_stream(BUCKET + name) as file:
                for chunk in chunks(content):
                    file.write(chunk)
        def read(name):
            return files.open_input_file(BUCKET + name).read()
        def listed():
            return [file.path for file in files.get_file_info(fs.FileSelector(BUCKET))]
        def remove():
            for path in listed():
                files.delete_file(path)
        """,
}
CLOSING = """
for name, content in (("small", SMALL), ("empty", b""), ("large", LARGE)):
    write(name, content)
    assert read(name) == content, name
names = sorted(path.rpartition("/")[2] for path in listed())
remove()
print(json.dumps(names))
"""


@pytest.fixture(scope="module")
def storage(replica: Replica) -> str:
    """The address of Cloud Storage without the gateway, with the bucket that the clients use."""
    url = f"http://127.0.0.1:{replica.gateway.backends['storage'].http}/storage/v1"
    httpx.post(f"{url}/b?project=p", json={"name": "others-bucket"}).raise_for_status()
    return url


@pytest.mark.parametrize("client", WRITTEN_BY)
def test_small_empty_and_large_objects_are_written_and_read(
    replica: Replica, storage: str, client: str
) -> None:
    program = f"BUCKET = 'others-bucket/{client}/'\n{OPENING}{_dedented(WRITTEN_BY[client])}{CLOSING}"
    names = {"empty", "large", "small"} | ({"touched"} if client == "gcsfs" else set())
    assert said(replica, program) == [sorted(names)]
    left = httpx.get(f"{storage}/b/others-bucket/o?prefix={client}/").json().get("items", [])
    assert [item["name"] for item in left if int(item["size"])] == []


def test_tables_are_written_and_read_by_polars(replica: Replica, storage: str) -> None:
    found = said(
        replica,
        """
        import json, polars, random
        table = {"x": [random.random() for _ in range(1_500_000)]}
        polars.DataFrame(table).write_parquet("gs://others-bucket/t/polars.parquet")
        polars.DataFrame({"x": []}).write_csv("gs://others-bucket/t/empty.csv", include_header=False)
        polars.LazyFrame(table).sink_parquet("gs://others-bucket/t/sunk.parquet")
        sizes = [polars.read_parquet(f"gs://others-bucket/t/{name}.parquet").height for name in ("polars", "sunk")]
        counted = polars.scan_parquet("gs://others-bucket/t/*.parquet").select(polars.len()).collect().item()
        print(json.dumps([*sizes, counted]))
        """,
    )
    assert found == [[1_500_000, 1_500_000, 3_000_000]]
    empty = httpx.get(f"{storage}/b/others-bucket/o/t%2Fempty.csv").json()
    assert empty["size"] == "0"


def _dedented(program: str) -> str:
    return "\n".join(line.removeprefix(" " * 8) for line in program.splitlines())
