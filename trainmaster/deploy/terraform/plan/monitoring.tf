# Metrics, alerts and dashboard. docs/how-to/runbook.md explains each alert and what to do about it.
# Queries are PromQL. They name the monitored resource wherever a metric can belong to several types of resource, as
# log-based metrics can: https://cloud.google.com/monitoring/promql/promql-mapping

locals {
  # The functions' standard output: https://cloud.google.com/run/docs/logging
  printed = join(" AND ", [
    "resource.type=\"cloud_run_revision\"",
    "resource.labels.service_name=(${join(" OR ", [for function in values(local.functions) : "\"${function.name}\""])})",
    "logName=\"projects/${var.project}/logs/run.googleapis.com%2Fstdout\"",
  ])

  # Counted in the functions' log, because besides the ledger the functions write only log lines. The filters match
  # fields only: severities, and the event names in trainmaster/orchestrator/log_events.py. None matches message text.
  metrics = {
    ends = {
      what   = "Ended jobs, by the entry point that recorded the end"
      filter = "jsonPayload.event=\"job_ended\""
      labels = ["entry_point"]
    }
    unreconciled = {
      what   = "Runs that a reconcile pass failed to check"
      filter = "jsonPayload.event=\"run_not_reconciled\""
      labels = []
    }
    behind = {
      what   = "Ticks that ran out of time"
      filter = "jsonPayload.event=\"reconcile_behind\""
      labels = []
    }
    quarantined = {
      what   = "Rules and dropped files that were put into quarantine"
      filter = "jsonPayload.event=\"quarantined\""
      labels = []
    }
    waits = {
      what   = "Submissions deferred for lack of quota or slots, and jobs that found no capacity"
      filter = "jsonPayload.event=\"run_waits\""
      labels = []
    }
    not_started = {
      what   = "Runs whose job has been queued for an hour or more, once an hour each"
      filter = "jsonPayload.event=\"job_not_started\""
      labels = []
    }
    refused = {
      what   = "Submissions that Vertex AI refused for something that the deployment lacks"
      filter = "jsonPayload.event=\"deployment_refused\""
      labels = []
    }
    refusals = {
      what   = "Rejected requests, and other events that can never succeed"
      filter = "severity=ERROR"
      labels = ["entry_point", "error"]
    }
    mistakes = {
      what   = "Unforeseen errors"
      filter = "severity=CRITICAL"
      labels = ["entry_point", "error"]
    }
  }

  # Of log-based metrics, `trainmaster/METRIC` or `trainmaster/NAME/METRIC`, as queries write them.
  metric_folder = "trainmaster/${replace(local.prefix, "-", "/")}"
  metric_prefix = replace(local.metric_folder, "/", "_")
  services      = join("|", values(local.functions)[*].name)
}

locals {
  # `for_s`: seconds for which the query must hold. The title is the heading in docs/how-to/runbook.md.
  alerts = {
    dead_letters = {
      title = "Events became dead letters"
      query = "max by (subscription_id) (pubsub_googleapis_com:subscription_num_undelivered_messages{subscription_id=~\"${join("|", keys(local.subscriptions))}\"}) > 0"
      for_s = 0
    }
    sink_errors = {
      title = "The log sink cannot deliver"
      query = "sum by (name) (increase(logging_googleapis_com:exports_error_count{monitored_resource=\"logging_sink\",name=~\"${join("|", keys(local.sinks))}\"}[10m])) > 0"
      for_s = 0
    }
    sink_silence = {
      title = "Ends arrive only by reconciliation"
      query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}ends{monitored_resource=\"cloud_run_revision\",entry_point=\"on_tick\"}[6h])) > 2 unless sum(increase(logging_googleapis_com:user_${local.metric_prefix}ends{monitored_resource=\"cloud_run_revision\",entry_point=\"on_job_log\"}[6h])) > 0"
      for_s = 0
    }
    no_ticks = {
      title = "No tick succeeds"
      query = "absent_over_time(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\",service_name=\"${local.functions["on-tick"].name}\",response_code_class=\"2xx\"}[15m])"
      for_s = 300
    }
    stuck_runs = {
      title = "A run is stuck"
      # Each tick logs it once per stuck run.
      query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}unreconciled{monitored_resource=\"cloud_run_revision\"}[30m])) > 20"
      for_s = 0
    }
    reconcile_behind = {
      title = "Reconciliation falls behind"
      query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}behind{monitored_resource=\"cloud_run_revision\"}[30m])) > 20"
      for_s = 0
    }
    runs_wait = {
      title = "Runs wait for capacity"
      query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}waits{monitored_resource=\"cloud_run_revision\"}[1h])) > 0"
      for_s = 21600
    }
    job_not_started = {
      title = "A job does not start"
      # Each such run logs it once an hour; a tick may be late.
      query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}not_started{monitored_resource=\"cloud_run_revision\"}[90m])) > 0"
      for_s = 0
    }
    deployment_refused = {
      title = "Vertex AI refuses the deployment"
      # One run asks at every tick. A new grant takes minutes to apply, so it must be so for a while.
      query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}refused{monitored_resource=\"cloud_run_revision\"}[10m])) > 0"
      for_s = 900
    }
    events_wait = {
      title = "Events wait"
      query = "max by (subscription_id) (pubsub_googleapis_com:subscription_oldest_unacked_message_age{subscription_id=~\"eventarc-${var.region}-(${local.services})-.*\"}) > 3600"
      for_s = 300
    }
    function_fails = {
      title = "A function fails"
      query = "sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\",service_name=~\"${local.services}\",response_code_class=\"5xx\"}[15m])) > 20"
      for_s = 0
    }
    mistakes = {
      title = "An unforeseen error"
      query = "sum by (entry_point, error) (increase(logging_googleapis_com:user_${local.metric_prefix}mistakes{monitored_resource=\"cloud_run_revision\"}[10m])) > 0"
      for_s = 0
    }
  }

  # Each tile is a third of the dashboard's width.
  tiles = [
    { title = "Run ends per hour, by function", query = "sum by (entry_point) (increase(logging_googleapis_com:user_${local.metric_prefix}ends{monitored_resource=\"cloud_run_revision\"}[1h]))" },
    { title = "Rejected requests per hour", query = "sum by (entry_point, error) (increase(logging_googleapis_com:user_${local.metric_prefix}refusals{monitored_resource=\"cloud_run_revision\"}[1h]))" },
    { title = "Deferred submissions per hour", query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}waits{monitored_resource=\"cloud_run_revision\"}[1h]))" },
    { title = "Events handled per minute", query = "sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\",service_name=~\"${local.services}\"}[1m]))" },
    { title = "Events answered with an error, per hour", query = "sum by (service_name) (increase(run_googleapis_com:request_count{monitored_resource=\"cloud_run_revision\",service_name=~\"${local.services}\",response_code_class!=\"2xx\"}[1h]))" },
    { title = "Handling time, 99th percentile, ms", query = "histogram_quantile(0.99, sum by (le, service_name) (increase(run_googleapis_com:request_latencies_bucket{monitored_resource=\"cloud_run_revision\",service_name=~\"${local.services}\"}[10m])))" },
    { title = "Age of the oldest waiting event, s", query = "max by (subscription_id) (pubsub_googleapis_com:subscription_oldest_unacked_message_age{subscription_id=~\"eventarc-${var.region}-(${local.services})-.*\"})" },
    { title = "Dead letters", query = "max by (subscription_id) (pubsub_googleapis_com:subscription_num_undelivered_messages{subscription_id=~\"${join("|", keys(local.subscriptions))}\"})" },
    { title = "Log entries that the sink could not deliver, per hour", query = "sum by (name) (increase(logging_googleapis_com:exports_error_count{monitored_resource=\"logging_sink\",name=~\"${join("|", keys(local.sinks))}\"}[1h]))" },
    { title = "Failed reconciliations of runs, per hour", query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}unreconciled{monitored_resource=\"cloud_run_revision\"}[1h]))" },
    { title = "Rules and files put into quarantine, per day", query = "sum(increase(logging_googleapis_com:user_${local.metric_prefix}quarantined{monitored_resource=\"cloud_run_revision\"}[1d]))" },
    { title = "Memory of instances as a share of the limit, 99th percentile", query = "histogram_quantile(0.99, sum by (le, service_name) (increase(run_googleapis_com:container_memory_utilizations_bucket{monitored_resource=\"cloud_run_revision\",service_name=~\"${local.services}\"}[10m])))" },
    { title = "Instances", query = "sum by (service_name) (max_over_time(run_googleapis_com:container_instance_count{monitored_resource=\"cloud_run_revision\",service_name=~\"${local.services}\"}[5m]))" },
  ]

  dashboard = {
    displayName = local.title
    mosaicLayout = {
      columns = 12
      tiles = [
        for number, tile in local.tiles : merge(
          # The service omits a 0 from its response, so every plan would show a difference:
          # https://github.com/hashicorp/terraform-provider-google/issues/7242
          { for side, at in { xPos = number % 3 * 4, yPos = floor(number / 3) * 4 } : side => at if at != 0 },
          {
            width  = 4
            height = 4
            widget = {
              title = tile.title
              xyChart = {
                dataSets = [{ plotType = "LINE", targetAxis = "Y1", timeSeriesQuery = { prometheusQuery = tile.query } }]
              }
            }
          }
        )
      ]
    }
  }
}

locals {
  # How the titles of alerts, channels and the dashboard begin.
  title = var.deployment == "" ? "Trainmaster" : "Trainmaster ${var.deployment}"

  # Receivers of notices by e-mail.
  notices = {
    for name, receiver in var.notify : name => {
      to     = receiver.to
      filter = "jsonPayload.event=\"notice_email\" AND jsonPayload.receiver=\"${name}\""
    } if length(receiver.to) > 0
  }
  notice_addresses = toset(flatten([for receiver in values(local.notices) : receiver.to]))
}
