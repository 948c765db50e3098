# The log sink, whose entries report the end of jobs.

resource "google_logging_project_sink" "sink" {
  for_each = module.plan.sinks

  name                   = each.key
  destination            = "pubsub.googleapis.com/${local.topic_ids[each.value.topic_role]}"
  filter                 = each.value.filter
  unique_writer_identity = true
}

# Without this grant the sink exists but drops every entry: the most common silent failure.
resource "google_pubsub_topic_iam_member" "sink" {
  for_each = module.plan.sinks

  topic  = local.topic_ids[each.value.topic_role]
  role   = "roles/pubsub.publisher"
  member = google_logging_project_sink.sink[each.key].writer_identity
}
