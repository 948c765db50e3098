"""The Publisher service: one method per call, request in, response out."""

from google.protobuf.empty_pb2 import Empty

from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.admin import Admin
from trainmaster.local.pubsub.broker import Broker
from trainmaster.local.pubsub.publishing import check_publish


class Publisher:
    """`google.pubsub.v1.Publisher`. `_remaining_s` is how long the caller still waits; nothing here takes long."""

    def __init__(self, broker: Broker, admin: Admin) -> None:
        self._broker = broker
        self._admin = admin

    async def CreateTopic(self, topic: wire.Message, _remaining_s: float) -> wire.Message:
        return self._admin.create_topic(topic)

    async def GetTopic(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        return self._broker.topic(request.topic)

    async def UpdateTopic(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        return self._admin.update_topic(request.topic, request.update_mask)

    async def ListTopics(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        topics, token = self._admin.list_topics(request.project, request.page_size, request.page_token)
        return wire.ListTopicsResponse(topics=topics, next_page_token=token)

    async def ListTopicSubscriptions(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        found, token = self._admin.topic_subscriptions(request.topic, request.page_size, request.page_token)
        return wire.ListTopicSubscriptionsResponse(subscriptions=found, next_page_token=token)

    async def ListTopicSnapshots(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._broker.topic(request.topic)
        return wire.ListTopicSnapshotsResponse()

    async def DeleteTopic(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._admin.delete_topic(request.topic)
        return Empty()

    async def DetachSubscription(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._admin.detach(request.subscription)
        return wire.DetachSubscriptionResponse()

    async def Publish(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._broker.topic(request.topic)
        check_publish(request.messages, request_bytes=request.ByteSize())
        return wire.PublishResponse(message_ids=self._broker.publish(request.topic, request.messages))
