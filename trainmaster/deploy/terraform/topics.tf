# Topics, and the subscriptions that belong to no function. Eventarc creates the functions' subscriptions with their
# triggers: triggers.tf.

locals {
  own_topics = { for role, id in module.plan.topics : role => id if !contains(var.foreign_topics, role) }
}

resource "google_pubsub_topic" "topic" {
  for_each = local.own_topics

  name         = each.value
  kms_key_name = var.kms_key

  depends_on = [time_sleep.apis, google_kms_crypto_key_iam_member.agent]
}

data "google_pubsub_topic" "foreign" {
  for_each = var.foreign_topics

  name = module.plan.topics[each.value]
}

locals {
  # Full names, projects/P/topics/T, by role.
  topic_ids = merge(
    { for role, topic in google_pubsub_topic.topic : role => topic.id },
    { for role, topic in data.google_pubsub_topic.foreign : role => topic.id }
  )
}

resource "google_pubsub_subscription" "kept" {
  for_each = module.plan.subscriptions

  name                       = each.key
  topic                      = local.topic_ids[each.value.topic_role]
  ack_deadline_seconds       = each.value.ack_deadline_s
  message_retention_duration = "${each.value.retention_s}s"

  # Never expires, even when no client reads it for a month.
  expiration_policy {
    ttl = ""
  }
}
