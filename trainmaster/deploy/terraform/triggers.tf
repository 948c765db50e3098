# How events reach the functions.

resource "google_eventarc_trigger" "trigger" {
  for_each = module.plan.triggers

  name            = each.value.name
  location        = var.region # a bucket's trigger must be in the bucket's location
  service_account = google_service_account.account["events"].email

  dynamic "matching_criteria" {
    for_each = each.value.criteria
    content {
      attribute = matching_criteria.key
      value     = matching_criteria.value
    }
  }

  dynamic "transport" {
    for_each = each.value.topic_role == null ? [] : [each.value.topic_role]
    content {
      pubsub {
        topic = local.topic_ids[transport.value]
      }
    }
  }

  destination {
    cloud_run_service {
      service = google_cloudfunctions2_function.function[each.value.function].name
      region  = var.region
    }
  }

  # A single delivery, without retries.
  dynamic "retry_policy" {
    for_each = module.plan.functions[each.value.function].retry ? [] : [1]
    content {
      max_attempts = retry_policy.value
    }
  }

  depends_on = [
    time_sleep.grants,
    google_cloud_run_v2_service_iam_member.function,
    google_storage_bucket.bucket,
  ]
}

locals {
  trigger_policies = {
    for name, trigger in module.plan.triggers : name => merge(
      module.plan.functions[trigger.function].subscription,
      { retry = module.plan.functions[trigger.function].retry }
    )
  }
}

# Eventarc creates the subscription, and has no setting for its retry policy or dead-letter topic. They are set
# afterwards, as its documentation recommends: https://cloud.google.com/eventarc/docs/retry-events
resource "terraform_data" "retries" {
  for_each = local.trigger_policies

  input = {
    subscription = google_eventarc_trigger.trigger[each.key].transport[0].pubsub[0].subscription
    flags = compact(concat([
      "--project=${var.project}",
      "--ack-deadline=${each.value.ack_deadline_s}",
      "--expiration-period=never",
      # Without retries, the trigger's own retry_policy limits the deliveries.
      ], !each.value.retry ? [] : [
      "--min-retry-delay=${each.value.min_pause_s}s",
      "--max-retry-delay=${each.value.max_pause_s}s",
      "--message-retention-duration=${each.value.retention_s}s",
      each.value.dead_letter_topic == null ? "" : "--dead-letter-topic=projects/${var.project}/topics/${each.value.dead_letter_topic}",
      each.value.max_attempts == null ? "" : "--max-delivery-attempts=${each.value.max_attempts}",
    ]))
  }
  triggers_replace = [
    google_eventarc_trigger.trigger[each.key].uid,
    jsonencode(each.value),
  ]

  provisioner "local-exec" {
    command = "gcloud pubsub subscriptions update ${self.input.subscription} ${join(" ", self.input.flags)}"
  }

  # Dead letters need a subscription that keeps them, and Pub/Sub needs permission to move them.
  depends_on = [google_pubsub_subscription.kept, google_pubsub_topic_iam_member.topic]
}

data "google_pubsub_subscription" "events" {
  for_each = module.plan.triggers

  name       = reverse(split("/", google_eventarc_trigger.trigger[each.key].transport[0].pubsub[0].subscription))[0]
  depends_on = [terraform_data.retries]
}

# Every plan warns when a subscription was changed by hand, so that events would be lost.
check "dead_letters_are_kept" {
  assert {
    condition = alltrue([
      for name, policy in local.trigger_policies :
      policy.dead_letter_topic == null || try(
        endswith(
          data.google_pubsub_subscription.events[name].dead_letter_policy[0].dead_letter_topic,
          "/topics/${policy.dead_letter_topic}"
        ),
        false
      )
    ])
    error_message = "A trigger's subscription has lost its dead-letter topic. Run `make doctor`: it names the subscription, and the command that restores the topic."
  }
}
