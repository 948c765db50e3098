"""The suites of clients that others wrote, each with the few adaptations that it needs to run here."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """One change of how a suite is run. Its files are never edited.

    `variables` are set, where `{project}` and `{account}` stand for the stack's; `unset` are removed from those that
    `trainmaster stack env --gateway` prints. `plugin` is a module in `plugins/`. `stack_options` are words of
    `trainmaster up`. `left_out` are paths or tests of the suite. `data` are files that it reads, by their sizes, for checkouts whose large files are absent.
    """

    why: str
    variables: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    plugin: str = ""
    stack_options: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    data: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One suite: `tests` of a repository at a commit, which has the client's code of that `version`.

    `tests` and `requires` are words of pytest and of pip.
    """

    name: str
    repository: str
    commit: str
    version: str
    tests: str
    requires: str
    adaptations: tuple[Adaptation, ...] = ()
    limit_s: int = 60
    folder: str = "."
    """Where pytest runs, below the checkout."""

    @property
    def checkout(self) -> str:
        """The name of the folder that `git clone` makes."""
        return self.repository.rpartition("/")[2]


COMMON = "pytest>=9 pytest-timeout pytest-asyncio google-cloud-testutils mock flaky psutil"
"""What every suite's set-up installs besides its client."""

DEFAULT_ENDPOINTS = Adaptation(
    why="the suite's clients use Google's default endpoints, as in the cloud, and the stack's gateway answers them",
    unset=("STORAGE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST"),
)
VERTEX_TESTS = (
    "custom_job e2e_tabular experiments initializer model_interactions model_upload model_version_management "
    "pipeline_job project_id_inference"
)
"""Those of custom jobs, pipelines, models and experiments; the others are of services that no stack imitates."""

SUITES = (
    Suite(
        name="python-storage",
        repository="googleapis/python-storage",
        commit="ab4997ce0f7b85947e84b226bd0edf6d714a946a",
        version="3.10.1",
        tests="tests/system",
        requires="google-cloud-storage google-cloud-iam google-cloud-kms google-cloud-pubsub brotli",
        adaptations=(
            DEFAULT_ENDPOINTS,
            Adaptation(
                why="the suite expects the key of a service account that owns the project; these credentials sign by IAM's "
                "signBlob, and the stack refuses no account",
                stack_options=("--isolation", "none"),
                variables={"SUITE_ACCOUNT": "{account}"},
                plugin="suite_signing",
            ),
            Adaptation(
                why="the project that pays for requests",
                variables={"GOOGLE_CLOUD_TESTS_USER_PROJECT": "{project}"},
            ),
            Adaptation(
                why="a test reads a public bucket of the real service",
                left_out=("tests/system/test_client.py::test_anonymous_client_access_to_public_bucket",),
            ),
            Adaptation(
                why="a copy of the repository may lack its large files; two tests compare with their checksums",
                data={
                    "tests/data/five-point-one-mb-file.zip": 5_347_737,
                    "tests/data/random_9_MiB_file": 9 * 2**20,
                },
            ),
        ),
    ),
    Suite(
        name="gcsfs",
        repository="fsspec/gcsfs",
        commit="20c58d0da0edb57ef99003ff60eb1cc67af98ce5",
        version="2026.8.0",
        tests="gcsfs/tests",
        requires="gcsfs google-cloud-storage-control fusepy pytest-subtests",
        adaptations=(
            Adaptation(
                why="its mode for fake-gcs-server, with the credentials that its continuous integration sets",
                variables={
                    "GOOGLE_APPLICATION_CREDENTIALS": "gcsfs/tests/fake-service-account-credentials.json"
                },
                unset=(
                    "https_proxy",
                    "HTTPS_PROXY",
                    "GCE_METADATA_HOST",
                    "GCE_METADATA_IP",
                    "FSSPEC_GS",
                    "FSSPEC_GCS",
                ),
            ),
            Adaptation(
                why="benchmarks, whose requirements are larger than the suite's, and the kernel's FUSE",
                left_out=("gcsfs/tests/perf", "gcsfs/tests/test_fuse.py"),
            ),
            Adaptation(
                why="the service needs a project to create a bucket in, for which fake-gcs-server does not ask; one test needs "
                "the variable's absence",
                variables={"GCSFS_DEFAULT_PROJECT": "{project}"},
                left_out=("gcsfs/tests/test_core.py::test_user_project_fallback_google_default",),
            ),
        ),
    ),
    Suite(
        name="python-logging",
        repository="googleapis/python-logging",
        commit="32233543fba80ff29f3ccdbec7a71652a86af17e",
        version="3.13.0",
        tests="tests/system",
        requires="google-cloud-logging google-cloud-bigquery opentelemetry-api opentelemetry-sdk",
        adaptations=(DEFAULT_ENDPOINTS,),
    ),
    Suite(
        name="python-pubsub",
        repository="googleapis/python-pubsub",
        commit="63796ff3def3658ea22d4c2b734c08ad5ed94e72",
        version="2.35.0",
        tests="tests/system.py",
        requires="google-cloud-pubsub",
        adaptations=(DEFAULT_ENDPOINTS,),
        limit_s=120,
    ),
    Suite(
        name="python-pubsub samples",
        repository="googleapis/python-pubsub",
        commit="63796ff3def3658ea22d4c2b734c08ad5ed94e72",
        version="2.35.0",
        folder="samples/snippets",
        tests=".",
        limit_s=120,
        requires="avro backoff opentelemetry-exporter-gcp-trace",
        adaptations=(Adaptation(why="Pub/Sub by its emulator's variable, as the samples' readers set it"),),
    ),
    Suite(
        name="python-aiplatform",
        repository="googleapis/python-aiplatform",
        commit="91cc8ce4f015771b5d8c43c8764ea9dc9abdb216",
        version="1.165.1",
        tests=" ".join(f"tests/system/aiplatform/test_{name}.py" for name in VERTEX_TESTS.split()),
        requires="google-cloud-aiplatform google-cloud-resource-manager kfp pandas scikit-learn setuptools",
        adaptations=(
            DEFAULT_ENDPOINTS,
            Adaptation(
                why="the project that its builds set",
                variables={"BUILD_SPECIFIC_GCLOUD_PROJECT": "{project}"},
            ),
        ),
        limit_s=240,
    ),
)
