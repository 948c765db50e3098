"""Jobs of AI Platform Training and the bodies of Vertex AI that they become, field by field."""

from tests.core.legacy_jobs import (
    GPU,
    IMAGE,
    Case,
    container,
    custom,
    package,
    pool,
    spec,
    tuning_of,
    with_image,
    with_packages,
)

ONE = pool("n1-standard-4", 1, container())
TIER = "$.trainingInput.scaleTier"
RUNTIME = "$.trainingInput.runtimeVersion"


CASES = (
    Case(
        name="BASIC is one small machine",
        written=with_image(scaleTier="BASIC"),
        becomes=spec(ONE),
        told=(TIER,),
    ),
    Case(
        name="without a tier it is BASIC",
        written=with_image(),
        becomes=spec(ONE),
        told=(TIER,),
    ),
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
        name="PREMIUM_1 has many of both",
        written=with_image(scaleTier="PREMIUM_1"),
        becomes=spec(
            pool("n1-highcpu-16", 1, container()),
            pool("n1-highcpu-16", 19, container()),
            pool("n1-highmem-8", 11, container()),
        ),
        told=(TIER,),
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
        written=custom(
            masterType="n1-standard-8",
            masterConfig={
                "acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": "1"},
                "diskConfig": {"bootDiskType": "pd-standard", "bootDiskSizeGb": 200},
            },
            workerType="n1-standard-4",
            workerCount=1,
            workerConfig={"acceleratorConfig": {"type": "ACCELERATOR_TYPE_UNSPECIFIED"}},
        ),
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
            evaluatorConfig={"imageUri": "gcr.io/project-1/evaluator:1"},
        ),
        becomes=spec(
            pool("n1-standard-4", 1, container(args=["--epochs=3"])),
            pool("n1-standard-4", 1, container(args=["--epochs=3"])),
            {},
            pool(
                "n1-standard-4",
                1,
                {"containerSpec": {"imageUri": "gcr.io/project-1/evaluator:1", "args": ["--epochs=3"]}},
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
            parameterServerType="standard",
            parameterServerCount=2,
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
            {},
            pool("n1-standard-4", 2, package(args=["--epochs=3"])),
        ),
        told=(
            "$.trainingInput.masterType",
            "$.trainingInput.parameterServerType",
            RUNTIME,
        ),
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
    Case(
        name="access, account, network and key are passed on",
        written=custom(
            region="us-central1",
            network="projects/12345/global/networks/net",
            serviceAccount="trainer@project-1.iam.gserviceaccount.com",
            enableWebAccess=True,
        ),
        becomes=spec(
            ONE,
            serviceAccount="trainer@project-1.iam.gserviceaccount.com",
            network="projects/12345/global/networks/net",
            enableWebAccess=True,
        ),
    ),
    Case(
        name="scheduling",
        written=custom(
            scheduling={
                "maxRunningTime": "7200s",
                "maxWaitTime": "3600s",
                "priority": 10,
                "resilientToWorkerRestart": False,
                "strategy": "LOW_COST",
            }
        ),
        becomes=spec(
            ONE,
            scheduling={"timeout": "7200s", "restartJobOnWorkerRestart": True, "strategy": "SPOT"},
        ),
        told=(
            "$.trainingInput.scheduling.maxWaitTime",
            "$.trainingInput.scheduling.priority",
            "$.trainingInput.scheduling.resilientToWorkerRestart",
            "$.trainingInput.scheduling.strategy",
        ),
    ),
    Case(
        name="a longest wait is kept where the accelerators can be waited for",
        written=custom(
            masterType="a2-highgpu-1g",
            masterConfig={"acceleratorConfig": {"type": "NVIDIA_TESLA_A100", "count": 1}},
            scheduling={"maxWaitTime": "3600s"},
        ),
        becomes=spec(
            pool("a2-highgpu-1g", 1, container(), acceleratorType="NVIDIA_TESLA_A100", acceleratorCount=1),
            scheduling={"strategy": "FLEX_START", "maxWaitDuration": "3600s"},
        ),
        told=("$.trainingInput.scheduling.maxWaitTime",),
    ),
    Case(
        name="a program that reads master is given the old environment",
        written=custom(useChiefInTfConfig=False, workerType="n1-standard-4", workerCount=1),
        becomes=spec(
            *[
                pool(
                    "n1-standard-4",
                    1,
                    container(env=[{"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}]),
                )
            ]
            * 2
        ),
        told=("$.trainingInput.useChiefInTfConfig",),
    ),
    Case(
        name="a file in snake_case means the same",
        written={
            "labels": {"model_name": "census"},
            "training_input": {
                "scale_tier": "CUSTOM",
                "master_type": "n1-standard-4",
                "master_config": {"image_uri": IMAGE},
                "use_chief_in_tf_config": True,
            },
        },
        becomes=spec(ONE),
    ),
    Case(
        name="what the old service wrote about a past job is passed over",
        written=custom()
        | {
            "state": "SUCCEEDED",
            "createTime": "2020-01-01T00:00:00Z",
            "etag": "x",
            "trainingOutput": {"a": 1},
        },
        becomes=spec(ONE),
        told=("$.createTime", "$.etag", "$.state", "$.trainingOutput"),
    ),
    Case(
        name="hyperparameters are a study, with the service's defaults",
        written=custom(
            hyperparameters={
                "params": [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}]
            }
        ),
        becomes=tuning_of(
            {
                "metrics": [{"metricId": "training/hptuning/metric", "goal": "MAXIMIZE"}],
                "parameters": [{"parameterId": "lr", "doubleValueSpec": {"minValue": 0.1, "maxValue": 1.0}}],
                "algorithm": "ALGORITHM_UNSPECIFIED",
                "measurementSelectionType": "LAST_MEASUREMENT",
            },
            spec(ONE),
        ),
    ),
    Case(
        name="every field of hyperparameters",
        written=custom(
            hyperparameters={
                "goal": "MINIMIZE",
                "hyperparameterMetricTag": "val/loss",
                "maxTrials": "12",
                "maxParallelTrials": 3,
                "maxFailedTrials": 2,
                "enableTrialEarlyStopping": True,
                "algorithm": "RANDOM_SEARCH",
                "params": [
                    {
                        "parameterName": "lr",
                        "type": "DOUBLE",
                        "minValue": 0.001,
                        "maxValue": 0.1,
                        "scaleType": "UNIT_LOG_SCALE",
                    },
                    {
                        "parameterName": "units",
                        "type": "INTEGER",
                        "minValue": 8.0,
                        "maxValue": "64",
                        "scaleType": "UNIT_REVERSE_LOG_SCALE",
                    },
                    {
                        "parameterName": "batch",
                        "type": "DISCRETE",
                        "discreteValues": [16, 32.5],
                        "minValue": 1,
                        "scaleType": "UNIT_LINEAR_SCALE",
                    },
                    {
                        "parameterName": "kind",
                        "type": "CATEGORICAL",
                        "categoricalValues": ["a", "b"],
                        "scaleType": "NONE",
                    },
                ],
            }
        ),
        becomes=tuning_of(
            {
                "metrics": [{"metricId": "val/loss", "goal": "MINIMIZE"}],
                "parameters": [
                    {
                        "parameterId": "lr",
                        "doubleValueSpec": {"minValue": 0.001, "maxValue": 0.1},
                        "scaleType": "UNIT_LOG_SCALE",
                    },
                    {
                        "parameterId": "units",
                        "integerValueSpec": {"minValue": "8", "maxValue": "64"},
                        "scaleType": "UNIT_REVERSE_LOG_SCALE",
                    },
                    {
                        "parameterId": "batch",
                        "discreteValueSpec": {"values": [16, 32.5]},
                        "scaleType": "UNIT_LINEAR_SCALE",
                    },
                    {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}},
                ],
                "algorithm": "RANDOM_SEARCH",
                "measurementSelectionType": "LAST_MEASUREMENT",
                "medianAutomatedStoppingSpec": {},
            },
            spec(ONE),
            maxTrialCount=12,
            parallelTrialCount=3,
            maxFailedTrialCount=2,
        ),
        told=(
            "$.trainingInput.hyperparameters.enableTrialEarlyStopping",
            "$.trainingInput.hyperparameters.params[2].minValue",
        ),
    ),
)
