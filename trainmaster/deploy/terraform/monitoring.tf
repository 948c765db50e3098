# Counters, alert policies and the dashboard of module.plan, and the notification channel that rules may watch.

resource "google_logging_metric" "line" {
  for_each = module.plan.metrics

  name        = "${module.plan.metric_folder}${each.key}"
  description = each.value.what
  filter      = "${module.plan.printed} AND ${each.value.filter}"

  metric_descriptor {
    metric_kind = "DELTA"
    value_type  = "INT64"

    dynamic "labels" {
      for_each = each.value.labels
      content {
        key        = labels.value
        value_type = "STRING"
      }
    }
  }

  label_extractors = { for label in each.value.labels : label => "EXTRACT(jsonPayload.${label})" }

  depends_on = [time_sleep.apis]
}

resource "google_monitoring_notification_channel" "email" {
  for_each = var.alert_emails

  display_name = "${module.plan.title}: ${each.value}"
  type         = "email"
  labels       = { email_address = each.value }

  depends_on = [time_sleep.apis]
}

# For the alert policies that users define for their models: rules may wait for them (docs/reference/rules.md). The
# policies below do not use it.
resource "google_monitoring_notification_channel" "alerts" {
  display_name = "${module.plan.title}: retraining rules"
  type         = "pubsub"
  labels       = { topic = local.topic_ids["alerts"] }

  depends_on = [time_sleep.apis]
}

resource "google_monitoring_alert_policy" "policy" {
  for_each = module.plan.alerts

  display_name          = "${module.plan.title}: ${each.value.title}"
  combiner              = "OR"
  notification_channels = [for channel in google_monitoring_notification_channel.email : channel.name]

  conditions {
    display_name = each.value.title

    condition_prometheus_query_language {
      query               = each.value.query
      duration            = "${each.value.for_s}s"
      evaluation_interval = "60s"
      # Cloud Monitoring knows a log-based metric only minutes after its creation, some only after their first log line.
      disable_metric_validation = true
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "What it means and what to do: docs/how-to/runbook.md, \"${each.value.title}\"."
  }

  depends_on = [google_logging_metric.line]
}

# Notices by e-mail: the function logs a line for a receiver, and an alert policy of that receiver sends it. Cloud
# Monitoring sends at most one notification in `period`, and the line's text as far as a label holds it.
# Source: https://cloud.google.com/logging/docs/alerting/log-based-alerts
resource "google_monitoring_notification_channel" "notices" {
  for_each = module.plan.notice_addresses

  display_name = "${module.plan.title} notices: ${each.value}"
  type         = "email"
  labels       = { email_address = each.value }

  depends_on = [time_sleep.apis]
}

resource "google_monitoring_alert_policy" "notices" {
  for_each = module.plan.notices

  display_name          = "${module.plan.title} notices: ${each.key}"
  combiner              = "OR"
  notification_channels = [for address in each.value.to : google_monitoring_notification_channel.notices[address].name]

  conditions {
    display_name = "A notice for ${each.key}"

    condition_matched_log {
      filter           = "${module.plan.printed} AND ${each.value.filter}"
      label_extractors = { notice = "EXTRACT(jsonPayload.message)" }
    }
  }

  alert_strategy {
    auto_close = "1800s"
    notification_rate_limit {
      period = "300s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    subject   = "${module.plan.title}: a notice for ${each.key}"
    content   = "$${log.extracted_label.notice}"
  }
}

resource "google_monitoring_dashboard" "dashboard" {
  dashboard_json = jsonencode(module.plan.dashboard)

  depends_on = [google_logging_metric.line]
}
