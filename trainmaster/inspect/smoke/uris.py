"""The paths that a smoke run gives to the program: gs:// URIs, as Vertex AI does, where they show something.

There is no bucket. Under a URI, functions for plain files fail, or make a folder called `gs:`, which shows them; but a
library that writes to Cloud Storage itself would fail, too, and a program that expects its buckets below /gcs.
"""

from dataclasses import dataclass

from trainmaster.inspect.program import ProgramSource

ROOT_VARIABLE, SURVIVE = "TRAINMASTER_GCS_ROOT", "trainer.survive"
"""Replaces /gcs. A program that reads it, as the trainer's library does, finds its files with URIs, too."""
MOUNT = "/gcs"
OF_URIS = ("gs:", "gsutil", "gcloud")
"""In a text of a program that takes URIs apart, or starts a tool that uploads files."""
CLOUD_LIBRARIES = frozenset(
    {"apache_beam", "cloudpathlib", "dask", "datasets", "etils", "flax", "fsspec", "gcsfs", "google", "keras",
     "lightning", "mlflow", "orbax", "pandas", "polars", "pyarrow", "pyspark", "pytorch_lightning", "ray",
     "smart_open", "tensorflow", "tensorstore", "tf_keras", "xarray", "zarr"}
)  # fmt: skip
"""Libraries that can write to gs:// URIs."""


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Whether the program gets gs:// URIs; if not, `doubt` says what else keeps it open whether it can write to them."""

    are_uris: bool
    doubt: str = ""


def paths_for(source: ProgramSource) -> Paths:
    """The paths that show most of what this program does."""
    if source.mention(ROOT_VARIABLE) is not None or SURVIVE in source.unread:
        return Paths(are_uris=True)
    if any(MOUNT in text for text in source.strings):
        return Paths(are_uris=False)
    libraries = {name.partition(".")[0] for name in source.imported_names} & CLOUD_LIBRARIES
    if libraries:
        doubt = f"{min(libraries)} can write to gs:// URIs, functions for plain files cannot"
        return Paths(are_uris=False, doubt=doubt)
    named = next((text for text in OF_URIS if any(text in word for word in source.strings)), None)
    doubt = source.gap or (f"the program names {named!r}" if named else "")
    return Paths(are_uris=not doubt, doubt=doubt)
