"""Google's own clients, configured only by a replica's environment, work against the stack."""

import pytest

from .conftest import ACCOUNT, PROJECT, Replica, said

pytestmark = pytest.mark.slow


def test_storage_finds_its_project_account_and_objects(replica: Replica) -> None:
    found = said(
        replica,
        """
        import json, google.auth, google.auth.transport.requests
        from google.cloud import storage
        credentials, project = google.auth.default()
        credentials.refresh(google.auth.transport.requests.Request())
        print(json.dumps([project, credentials.service_account_email]))
        client = storage.Client()
        blob = client.create_bucket("clients-bucket").blob("a/b.txt")
        blob.upload_from_string("small")
        large = client.bucket("clients-bucket").blob("large")
        large.upload_from_string(b"x" * 9_000_000)
        print(json.dumps([blob.download_as_text(), len(large.download_as_bytes())]))
        print(json.dumps([each.name for each in client.list_blobs("clients-bucket")]))
        """,
    )
    assert found == [[PROJECT, ACCOUNT], ["small", 9_000_000], ["a/b.txt", "large"]]


def test_vertex_ai_takes_jobs_over_either_transport(replica: Replica) -> None:
    """In one process, because importing the library takes seconds."""
    found = said(
        replica,
        """
        import json
        from google.api_core import exceptions
        from google.cloud import aiplatform, storage
        storage.Client().create_bucket("vertex-bucket")
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1,
                "container_spec": {"image_uri": "gcr.io/p/none"}}
        for transport in ("rest", "grpc"):
            aiplatform.init(location="europe-west4", staging_bucket="gs://vertex-bucket", api_transport=transport)
            job = aiplatform.CustomJob(display_name=f"by-{transport}", worker_pool_specs=[pool])
            job.submit()
            listed = aiplatform.CustomJob.list(filter=f'display_name="by-{transport}"')
            client = type(job.api_client.transport).__name__
            print(json.dumps([transport, client, [each.resource_name == job.resource_name for each in listed]]))
            try:
                aiplatform.CustomJob.get(job.resource_name[:-1])
            except exceptions.NotFound as error:
                print(json.dumps(["not found", "does not exist" in str(error)]))
        """,
    )
    assert found == [
        ["rest", "JobServiceRestTransport", [True]],
        ["not found", True],
        ["grpc", "JobServiceGrpcTransport", [True]],
        ["not found", True],
    ]


def test_pubsub_and_logging_are_reached_over_grpc(replica: Replica) -> None:
    found = said(
        replica,
        """
        import json
        from google.cloud import logging, pubsub_v1
        topic = pubsub_v1.PublisherClient.topic_path("project-1", "topic-1")
        subscription = pubsub_v1.SubscriberClient.subscription_path("project-1", "subscription-1")
        with pubsub_v1.SubscriberClient() as subscriber, pubsub_v1.PublisherClient() as publisher:
            publisher.create_topic(name=topic)
            subscriber.create_subscription(name=subscription, topic=topic)
            publisher.publish(topic, b"hello").result(60)
            pulled = subscriber.pull(subscription=subscription, max_messages=1)
            print(json.dumps([each.message.data.decode() for each in pulled.received_messages]))
        client = logging.Client()
        client.logger("own").log_text("a line")
        print(json.dumps([each.payload for each in client.list_entries(filter_="textPayload:line")]))
        """,
    )
    assert found == [["hello"], ["a line"]]


def test_tensorflow_reads_and_writes_gs(replica: Replica) -> None:
    found = said(
        replica,
        """
        import json, os
        os.environ["TF_USE_LEGACY_KERAS"] = "1"  # Keras 3 would be loaded at once, Keras 2 when it is used
        import tensorflow as tf
        from google.cloud import storage
        storage.Client().create_bucket("tensorflow-bucket")
        file, root = tf.io.gfile, "gs://tensorflow-bucket/run"
        file.makedirs(f"{root}/empty")
        for name, text in (("a.txt", "text"), ("nothing.txt", ""), ("with space&%.txt", "odd")):
            with file.GFile(f"{root}/{name}", "w") as opened:
                opened.write(text)
            assert file.GFile(f"{root}/{name}").read() == text, name
        print(json.dumps(sorted(file.listdir(root))))
        file.rename(f"{root}/a.txt", f"{root}/b.txt")
        print(json.dumps([file.exists(f"{root}/a.txt"), file.isdir(root), file.stat(f"{root}/b.txt").length]))
        module = tf.Module()
        module.weight = tf.Variable([1.0, 2.0])
        checkpoint = tf.train.Checkpoint(module=module)
        path = checkpoint.save(f"{root}/checkpoints/point")
        module.weight.assign([0.0, 0.0])
        checkpoint.restore(path).assert_consumed()
        print(json.dumps(module.weight.numpy().tolist()))
        tf.saved_model.save(module, f"{root}/model")
        print(json.dumps(tf.saved_model.load(f"{root}/model").weight.numpy().tolist()))
        with tf.summary.create_file_writer(f"{root}/logs").as_default():
            tf.summary.scalar("loss", 0.5, step=1)
        print(json.dumps([len(file.glob(f"{root}/logs/events.*"))]))
        file.rmtree(root)
        print(json.dumps([file.exists(root)]))
        """,
    )
    assert found == [
        ["a.txt", "empty/", "nothing.txt", "with space&%.txt"],
        [False, True, 4],
        [1.0, 2.0],
        [1.0, 2.0],
        [1],
        [False],
    ]
