# What is deployed, computed from trainmaster/deploy/topology.yaml and trainmaster/deploy/permissions.yaml alone.
# No provider is needed here: `terraform console` evaluates it on any machine, and tests/deploy/test_parity.py
# compares what it says with what the local stack starts.

terraform {
  required_version = ">= 1.7"
}

variable "project" {
  type        = string
  description = "Project id."
}

variable "region" {
  type        = string
  description = "Region of everything: Vertex AI, buckets, functions and triggers."
}

variable "project_number" {
  type        = string
  description = "Number of the project: Google's own accounts in it are named by it."
}

variable "watched_buckets" {
  type        = set(string)
  default     = []
  description = "Buckets beside our own that rules watch."
}

locals {
  topology = yamldecode(
    replace(
      replace(file("${path.module}/../../topology.yaml"), "$${project}", var.project),
      "$${region}", var.region
    )
  )
  topics  = local.topology.topics
  buckets = local.topology.buckets

  # Of the deployment alone: sources of the functions and what builds leave.
  builds_bucket = "${var.project}-builds"

  # How many days marks in the ledger stay at most, by their names' beginning. The functions remove most of them
  # earlier: what started counts for a day, that a cap was told for its hour or day, and an answer to a self-test
  # is read within minutes.
  ledger_days = { "started/" = 3, "caps/" = 40, "self-test/" = 2 }

  # "region-docker.pkg.dev/project/REPOSITORY/image"
  repository = split("/", local.topology.images.trainer)[2]
}

locals {
  # Pauses between deliveries and retention are Eventarc's own, written down so that nothing else can be in force:
  # https://cloud.google.com/eventarc/docs/retry-events
  pauses_s    = { min = 10, max = 600 }
  retention_s = 86400

  functions = {
    for name, function in local.topology.functions : name => {
      entry_point = function.entry_point
      timeout_s   = function.timeout_s
      memory      = "${function.memory_mib}Mi"
      concurrency = function.concurrency
      environment = merge(local.topology.environment, {
        GOOGLE_CLOUD_PROJECT           = var.project
        TRAINMASTER_FUNCTION_TIMEOUT_S = tostring(function.timeout_s)
        # functions-framework starts one worker with four threads a processor, whatever the concurrency is.
        THREADS = tostring(function.concurrency)
        WORKERS = "1"
      })
      # A tick does the work of all before it, so more than the one that runs and the next are of no use.
      max_instances = function.retry ? 20 : 2

      retry = function.retry

      # Eventarc makes the subscription; these are set on it afterwards.
      subscription = {
        ack_deadline_s    = min(max(function.timeout_s, 10), 600)
        min_pause_s       = local.pauses_s.min
        max_pause_s       = local.pauses_s.max
        retention_s       = local.retention_s
        dead_letter_topic = try(local.topics[function.dead_letter.topic], null)
        max_attempts      = try(function.dead_letter.max_attempts, null)
      }
    }
  }
}

locals {
  triggers = merge(
    {
      for name, function in local.topology.functions : name => {
        function = name
        criteria = merge(
          {
            type = (
              try(function.trigger.bucket, null) != null
              ? "google.cloud.storage.object.v1.finalized"
              : "google.cloud.pubsub.topic.v1.messagePublished"
            )
          },
          try({ bucket = local.buckets[function.trigger.bucket] }, {})
        )
        # A bucket's events come through a topic that Eventarc makes for the trigger.
        topic_role = try(function.trigger.topic, null)
      }
    },
    # Whoever hears of the data bucket hears of the others that are watched. A bucket's name may be too long and
    # have characters that a trigger's may not.
    merge([
      for name, function in local.topology.functions : {
        for bucket in var.watched_buckets : "${name}-${substr(sha1(bucket), 0, 8)}" => {
          function   = name
          criteria   = { type = "google.cloud.storage.object.v1.finalized", bucket = bucket }
          topic_role = null
        }
      } if try(function.trigger.bucket, null) == "data"
    ]...)
  )

  subscriptions = {
    for name, kept in local.topology.subscriptions : name => {
      topic_role     = kept.topic
      topic          = local.topics[kept.topic]
      retention_s    = kept.retention_h * 3600
      ack_deadline_s = kept.ack_deadline_s
    }
  }

  sinks = {
    for name, sink in local.topology.sinks : name => {
      topic_role = sink.topic
      topic      = local.topics[sink.topic]
      filter     = file("${path.module}/../../${sink.filter_file}")
    }
  }

  schedules = {
    for name, schedule in local.topology.schedules : name => {
      cron       = schedule.cron
      time_zone  = schedule.time_zone
      topic_role = schedule.topic
      topic      = local.topics[schedule.topic]
      data       = schedule.data
    }
  }
}
