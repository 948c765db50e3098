"""Jobs of AI Platform Training and the bodies of Vertex AI that they become, field by field."""

from tests.core.ai_platform_job_cases import JOB_CASES
from tests.core.ai_platform_jobs import (
    GPU,
    ONE,
    Case,
    container,
    custom,
    package,
    pool,
    spec,
    with_image,
    with_packages,
)

TIER = "$.trainingInput.scaleTier"
RUNTIME = "$.trainingInput.runtimeVersion"


CASES = (
    Case(
        name="BASIC is one small machine",
        written=with_image(scaleTier="BASIC"),
        becomes=spec(ONE),
        told=(TIER,),
    ),
    Case(name="without a tier it is BASIC", written=with_image(), becomes=spec(ONE), told=(TIER,)),
    Case(
        name="STANDARD_1 has workers and parameter servers",
        written=with_packages(scaleTier="STANDARD_1"),
        becomes=spec(
            pool("n1-standard-8", 1, package()),
            pool("n1-standard-8", 4, package()),
            pool("n1-standard-4", 3, package()),
        ),
        told=(RUNTIME, TIER),
    ),
    Case(
        name="CUSTOM has each role as it is written",
        written=custom(
            masterType="n1-highcpu-16",
            workerType="n1-highcpu-32",
            workerCount="9",
            parameterServerType="n1-highmem-8",
            parameterServerCount=3,
            evaluatorType="n1-standard-4",
            evaluatorCount="1",
        ),
        becomes=spec(
            pool("n1-highcpu-16", 1, container()),
            pool("n1-highcpu-32", 9, container()),
            pool("n1-highmem-8", 3, container()),
            pool("n1-standard-4", 1, container()),
        ),
    ),
    Case(
        name="an absent role in the middle keeps its place",
        written=custom(evaluatorType="n1-standard-4", evaluatorCount=1),
        becomes=spec(ONE, {}, {}, ONE),
    ),
    Case(
        name="a role of no replicas is absent",
        written=custom(workerType="n1-standard-4", workerCount="0", parameterServerCount=0),
        becomes=spec(ONE),
    ),
    Case(
        name="legacy machines get their Compute Engine names",
        written=custom(
            masterType="complex_model_m",
            workerType="standard_p100",
            workerCount=2,
            parameterServerType="large_model",
            parameterServerCount=1,
        ),
        becomes=spec(
            pool("n1-highcpu-16", 1, container()),
            pool("n1-standard-8", 2, container(), acceleratorType="NVIDIA_TESLA_P100", acceleratorCount=1),
            pool("n1-highmem-8", 1, container()),
        ),
        told=(
            "$.trainingInput.masterType",
            "$.trainingInput.parameterServerType",
            "$.trainingInput.workerType",
        ),
    ),
    Case(
        name="accelerators and disks are the role's",
        written=custom("""
            masterType: n1-standard-8
            masterConfig:
              acceleratorConfig: {type: NVIDIA_TESLA_T4, count: '1'}
              diskConfig: {bootDiskType: pd-standard, bootDiskSizeGb: 200}
            workerType: n1-standard-4
            workerCount: 1
            workerConfig: {acceleratorConfig: {type: ACCELERATOR_TYPE_UNSPECIFIED}}
        """),
        becomes=spec(
            pool(
                "n1-standard-8",
                1,
                container(),
                acceleratorType="NVIDIA_TESLA_T4",
                acceleratorCount=1,
                diskSpec={"bootDiskType": "pd-standard", "bootDiskSizeGb": 200},
            ),
            ONE,
        ),
    ),
    Case(
        name="args go to every role, and an image of a role's own is the role's",
        written=custom(
            args=["--epochs=3"],
            workerType="n1-standard-4",
            workerCount=1,
            evaluatorType="n1-standard-4",
            evaluatorCount=1,
            evaluatorConfig={"imageUri": "gcr.io/my-project/evaluator:1"},
        ),
        becomes=spec(
            pool("n1-standard-4", 1, container(args=["--epochs=3"])),
            pool("n1-standard-4", 1, container(args=["--epochs=3"])),
            {},
            pool(
                "n1-standard-4",
                1,
                {"containerSpec": {"imageUri": "gcr.io/my-project/evaluator:1", "args": ["--epochs=3"]}},
            ),
        ),
    ),
    Case(
        name="containerCommand and containerArgs are the role's, and only the image passes on",
        written=custom(
            masterConfig={"containerCommand": ["python", "-m", "chief"], "containerArgs": ["--a"]},
            workerType="n1-standard-4",
            workerCount=1,
            workerConfig={"containerArgs": ["--b"]},
            parameterServerType="n1-standard-4",
            parameterServerCount=1,
        ),
        becomes=spec(
            pool("n1-standard-4", 1, container(command=["python", "-m", "chief"], args=["--a"])),
            pool("n1-standard-4", 1, container(args=["--b"])),
            ONE,
        ),
        told=("$.trainingInput.masterConfig",),
    ),
    Case(
        name="packages run in the prebuilt container, the one with CUDA where there is a GPU",
        written=with_packages(
            scaleTier="CUSTOM",
            masterType="standard_v100",
            workerType="standard",
            workerCount=2,
            args=["--epochs=3"],
        ),
        becomes=spec(
            pool(
                "n1-standard-8",
                1,
                package(GPU, args=["--epochs=3"]),
                acceleratorType="NVIDIA_TESLA_V100",
                acceleratorCount=1,
            ),
            pool("n1-standard-4", 2, package(args=["--epochs=3"])),
        ),
        told=("$.trainingInput.masterType", RUNTIME, "$.trainingInput.workerType"),
    ),
    Case(
        name="jobDir follows the arguments of every role",
        written=custom(
            jobDir="gs://models/jobs",
            workerType="n1-standard-4",
            workerCount=1,
            workerConfig={"containerArgs": ["--b"]},
        ),
        becomes=spec(
            pool("n1-standard-4", 1, container(args=["--job-dir", "gs://models/jobs"])),
            pool("n1-standard-4", 1, container(args=["--b", "--job-dir", "gs://models/jobs"])),
        )
        | {"baseOutputDirectory": {"outputUriPrefix": "gs://models/jobs/census/run-1"}},
        told=("$.trainingInput.jobDir",),
    ),
    Case(
        name="a jobDir elsewhere is the program's alone",
        written=custom(jobDir="gs://elsewhere/jobs/"),
        becomes=spec(pool("n1-standard-4", 1, container(args=["--job-dir", "gs://elsewhere/jobs/"]))),
        told=("$.trainingInput.jobDir", "$.trainingInput.jobDir"),
    ),
    *JOB_CASES,
)
