# The deployment's resources, computed from trainmaster/deploy/topology.yaml and trainmaster/deploy/permissions.yaml
# only. This module needs no provider: `terraform console` evaluates it on any machine, and tests/deploy/test_parity.py
# compares its outputs with what the local stack starts.

terraform {
  required_version = ">= 1.7"
}

variable "project" {
  type        = string
  description = "Project id."
}

variable "region" {
  type        = string
  description = "Region of the whole deployment: Vertex AI, buckets, functions and triggers."
}

variable "deployment" {
  type        = string
  default     = ""
  description = "Name of the deployment; empty for the one in the project that has none."
}

variable "project_number" {
  type        = string
  description = "Project number, which is part of the names of Google's service agents."
}

variable "watched_buckets" {
  type        = set(string)
  default     = []
  description = "Buckets outside the deployment that rules watch."
}

variable "data_buckets" {
  type        = set(string)
  default     = []
  description = "Buckets outside the deployment that its functions and jobs read."
}

variable "teams" {
  type        = map(object({ members = optional(set(string), []), requests_topic = optional(string) }))
  default     = {}
  description = "The policy's teams by name: who is a member, and the topic of the team's requests."
}

variable "notify" {
  type        = map(object({ secret = optional(string), to = optional(list(string), []) }))
  default     = {}
  description = "The policy's receivers of notices by name: the id of the secret, or the e-mail addresses, of each."
}

variable "policy_keys" {
  type        = set(string)
  default     = ["experiments", "retention"]
  description = "The policy's keys that are set, of those that grants depend on."
}

variable "ci" {
  type        = object({ repository_id = string, environments = optional(map(string), {}) })
  default     = null
  description = "The repository whose jobs may act for CI, and the environment of each role but `plan`."
}

locals {
  # Before the names of functions and triggers, and inside all others; `tm-NAME-on-request-published` is as long as an
  # account's id may be.
  prefix = var.deployment == "" ? "" : "${var.deployment}-"
  topology = yamldecode(
    replace(replace(replace(replace(file("${path.module}/../../topology.yaml"),
      "$${project}", var.project),
      "$${region}", var.region),
      "$${deployment}", var.deployment),
      "$${prefix}", local.prefix
    )
  )
  # A team's requests come from a topic of the topology, or from one that is created for them.
  team_topics = {
    for team, settings in var.teams : "requests-${team}" => settings.requests_topic
    if settings.requests_topic != null && !contains(values(local.topology.topics), coalesce(settings.requests_topic, "-"))
  }
  topics  = merge(local.topology.topics, local.team_topics)
  buckets = local.topology.buckets

  # Exists only in a deployment: the functions' source and build outputs.
  builds_bucket = "${var.project}-${local.prefix}builds"

  # Maximum age of marks in the ledger, in days, by prefix. A start counts for a day, a cap's notice for
  # its hour or day, and the answer to a self-test is read within minutes. Deliveries of notices outlast dead letters.
  ledger_days = { "jobs/" = 90, "started/" = 3, "caps/" = 40, "self-test/" = 2, "notices/" = 30 }

  # The secrets of receivers of notices, each once. Terraform reads and writes none of them.
  secrets = toset([for receiver in values(var.notify) : receiver.secret if receiver.secret != null])

  # "region-docker.pkg.dev/project/REPOSITORY/image"
  repository = split("/", local.topology.images.trainer)[2]
}

locals {
  # Eventarc's defaults for the pauses between deliveries and for retention, set explicitly so that no other values
  # can apply: https://cloud.google.com/eventarc/docs/retry-events
  pauses_s    = { min = 10, max = 600 }
  retention_s = 86400

  functions = {
    for name, function in local.topology.functions : name => {
      name        = "${local.prefix}${name}"
      entry_point = function.entry_point
      timeout_s   = function.timeout_s
      memory      = "${function.memory_mib}Mi"
      concurrency = function.concurrency
      environment = merge({ for key, value in local.topology.environment : key => value if value != "" }, {
        GOOGLE_CLOUD_PROJECT           = var.project
        TRAINMASTER_FUNCTION_TIMEOUT_S = tostring(function.timeout_s)
        # By default functions-framework starts one worker with four threads per processor, whatever the concurrency.
        THREADS = tostring(function.concurrency)
        WORKERS = "1"
      })
      # A tick does the work of all earlier ones, so only the running one and the next are useful.
      max_instances = function.retry ? 20 : 2

      retry = function.retry

      secrets = try(function.secrets, null) == "notify" ? local.secrets : toset([])

      # Eventarc creates the subscription; triggers.tf sets these on it afterwards.
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
        name     = "${local.prefix}${name}"
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
        # A bucket's events arrive through a topic that Eventarc creates for the trigger.
        topic_role = try(function.trigger.topic, null)
      }
    },
    # A function that receives the data bucket's events also receives those of the other watched buckets. The trigger
    # names contain a hash, because a bucket's name may be too long for a trigger or have characters it cannot have.
    merge([
      for name, function in local.topology.functions : {
        for bucket in var.watched_buckets : "${name}-${substr(sha1(bucket), 0, 8)}" => {
          name       = "${local.prefix}${name}-${substr(sha1(bucket), 0, 8)}"
          function   = name
          criteria   = { type = "google.cloud.storage.object.v1.finalized", bucket = bucket }
          topic_role = null
        }
      } if try(function.trigger.bucket, null) == "data"
    ]...),
    # The event says from which topic it came, and so for which team it is.
    merge([
      for name, function in local.topology.functions : {
        for team in keys(var.teams) : "${name}-${team}" => {
          name       = "${local.prefix}${name}-${team}"
          function   = name
          criteria   = { type = "google.cloud.pubsub.topic.v1.messagePublished" }
          topic_role = "requests-${team}"
        } if contains(keys(local.team_topics), "requests-${team}")
      } if try(function.trigger.topic, null) == "requests"
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
