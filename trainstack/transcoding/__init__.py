"""gRPC in front of a service that is served over REST, and REST in front of one that is served over gRPC.

Google serves both from one description of an API. Here JobService and Cloud Logging are served over REST, and
Pub/Sub over gRPC; the HTTP rule of each method maps one to the other. Source of the rules:
google/api/http.proto, https://google.aip.dev/127.
"""
