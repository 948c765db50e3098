# What comes by the clock.

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

  # Ticks before there is a function to take them would be of no use.
  depends_on = [google_project_iam_member.agent, google_eventarc_trigger.trigger]
}
