# Scheduled messages.

resource "google_cloud_scheduler_job" "schedule" {
  for_each = module.plan.schedules

  name      = each.key
  region    = coalesce(var.scheduler_region, var.region)
  schedule  = each.value.cron
  time_zone = each.value.time_zone

  pubsub_target {
    topic_name = local.topic_ids[each.value.topic_role]
    data       = base64encode(each.value.data)
  }

  # A tick is useless before the function that handles it exists.
  depends_on = [google_project_iam_member.agent, google_eventarc_trigger.trigger]
}
