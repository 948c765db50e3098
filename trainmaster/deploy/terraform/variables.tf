variable "project" {
  type        = string
  description = "Project id."

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "A project id has 6 to 30 lower-case letters, digits and hyphens, begins with a letter, and does not end with a hyphen."
  }
}

variable "region" {
  type        = string
  description = "Region of the whole deployment: Vertex AI, buckets, functions and triggers."
}

variable "deployment" {
  type        = string
  default     = ""
  description = "Name of the deployment, for several in one project; `trainmaster deploy --name` sets it. One may have none. Do not set it."

  validation {
    condition     = can(regex("^([a-z][a-z0-9]{0,5})?$", var.deployment)) && !can(regex("^((build|ci|eval|events|on)$|goog|g00g|gcp)", var.deployment))
    error_message = "A deployment's name has 1 to 6 lower-case letters and digits, the first a letter; it is not build, ci, eval, events or on, and does not begin with goog, g00g or gcp."
  }
}

variable "source_dir" {
  type        = string
  default     = "../functions"
  description = "The functions' source; `trainmaster deploy` puts it beside this folder."
}

variable "runtime" {
  type        = string
  default     = "python311"
  description = "Runtime of the functions. The tests run on Python 3.11."
}

variable "build_worker_pool" {
  type        = string
  default     = null
  description = "Private pool of Cloud Build that builds the functions: projects/P/locations/REGION/workerPools/W. Cloud Build's own by default."

  validation {
    condition     = var.build_worker_pool == null || can(regex("^projects/[^/]+/locations/[^/]+/workerPools/[^/]+$", var.build_worker_pool))
    error_message = "build_worker_pool must be the pool's full resource name, projects/P/locations/REGION/workerPools/W."
  }
}

variable "scheduler_region" {
  type        = string
  default     = null
  description = "Region of the schedules, where Cloud Scheduler does not support var.region. Defaults to var.region."
}

variable "kept_buckets" {
  type        = map(string)
  default     = {}
  description = "Existing buckets to import, by role: those that an earlier `make undeploy` kept."
}

variable "kept_roles" {
  type        = set(string)
  default     = []
  description = "Existing custom roles to import: those that an earlier `make undeploy` kept."
}

variable "kept_accounts" {
  type        = set(string)
  default     = []
  description = "Existing service accounts to import, without `tm-`: those that an earlier `make undeploy` kept."
}

variable "foreign_topics" {
  type        = set(string)
  default     = []
  description = "Roles of existing topics that Trainmaster uses but never creates or deletes. Only `images` is allowed, because Artifact Registry dictates its id."

  validation {
    condition     = length(setsubtract(var.foreign_topics, ["images"])) == 0
    error_message = "Only the topic `images` may exist outside the deployment: remove the others from foreign_topics."
  }
}

variable "watched_buckets" {
  type        = set(string)
  default     = []
  description = "Other buckets that rules watch. They must be in var.region, and the accounts of training jobs need read access to them."
}

variable "data_buckets" {
  type        = set(string)
  default     = []
  description = "Other buckets, of any project, that the functions and the jobs without a team may read as they read the deployment's data bucket."
}

variable "job_keys" {
  type        = set(string)
  default     = []
  description = "Keys, of any project, that requests name for their jobs: projects/P/locations/REGION/keyRings/R/cryptoKeys/K. Vertex AI's service agent may use them."

  validation {
    condition     = alltrue([for key in var.job_keys : can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", key))])
    error_message = "Each of job_keys must be a key's full resource name, projects/P/locations/REGION/keyRings/R/cryptoKeys/K."
  }
}

variable "teams" {
  type        = map(object({ members = optional(set(string), []), requests_topic = optional(string) }))
  default     = {}
  description = "The policy's teams by name, which `trainmaster deploy` reads from functions/policy.yaml. Do not set it."
}

variable "notify" {
  type        = map(object({ secret = optional(string), to = optional(list(string), []) }))
  default     = {}
  description = "The policy's receivers of notices by name, which `trainmaster deploy` reads from functions/policy.yaml. Do not set it."
}

variable "policy_keys" {
  type        = set(string)
  default     = []
  description = "The policy's keys that are set, of those that grants depend on. `trainmaster deploy` reads them from functions/policy.yaml. Do not set it."
}

variable "console" {
  type        = object({ image = string, members = set(string) })
  default     = null
  description = "The console for a team: its image, and who may open it, for example group:vision@example.com. None by default."
}

variable "delete_buckets" {
  type        = bool
  default     = false
  description = "Delete buckets with their contents when they are destroyed. `make undeploy BUCKETS=delete` sets it."
}

variable "alert_emails" {
  type        = set(string)
  default     = []
  description = "Email addresses to notify when an alert policy fires. Without any, only the console shows incidents."
}

variable "kms_key" {
  type        = string
  default     = null
  description = "Key that encrypts buckets, topics, images and functions: projects/P/locations/REGION/keyRings/R/cryptoKeys/K. Google-managed keys by default."

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "kms_key must be the key's full resource name, projects/P/locations/REGION/keyRings/R/cryptoKeys/K."
  }
}

variable "soft_delete_s" {
  type        = number
  default     = 0
  description = "Seconds for which buckets keep deleted objects, for organisations that require it: 0, or 7 to 90 days. Off by default."

  validation {
    # https://cloud.google.com/storage/docs/soft-delete
    condition     = var.soft_delete_s == 0 || (var.soft_delete_s >= 604800 && var.soft_delete_s <= 7776000)
    error_message = "soft_delete_s must be 0, or between 604800 (7 days) and 7776000 (90 days)."
  }
}

variable "vpc_connector" {
  type        = string
  default     = null
  description = "Serverless VPC Access connector of the functions: projects/P/locations/REGION/connectors/C. None by default."
}

variable "vpc_all_traffic" {
  type        = bool
  default     = false
  description = "Route all of the functions' traffic through the connector or subnetwork, not only traffic to private addresses."
}

variable "vpc_subnetwork" {
  type        = string
  default     = null
  description = "Subnetwork of the functions, for direct VPC egress in place of a connector: projects/P/regions/REGION/subnetworks/S. None by default."
}

variable "ci" {
  type        = object({ repository_id = string, environments = optional(map(string), {}) })
  default     = null
  description = "Jobs of GitHub Actions that may act for CI: the repository's number, and for each of `submit`, `build` and `deploy` that they may do, the environment that a job must be in. None by default."

  validation {
    condition     = var.ci == null || can(regex("^[1-9][0-9]{0,18}$", var.ci.repository_id))
    error_message = "ci.repository_id is the repository's number, as text: gh api repos/OWNER/NAME --jq .id"
  }

  validation {
    condition     = var.ci == null || length(setsubtract(try(keys(var.ci.environments), []), ["submit", "build", "deploy"])) == 0
    error_message = "ci.environments names environments for submit, build and deploy only."
  }

  validation {
    condition     = var.ci == null || alltrue([for name in try(values(var.ci.environments), []) : can(regex("^[A-Za-z0-9_.-]{1,100}$", name))])
    error_message = "An environment of ci.environments has 1 to 100 letters, digits, '_', '.' and '-'."
  }

  validation {
    condition     = var.ci == null || length(distinct(try(values(var.ci.environments), []))) == length(try(values(var.ci.environments), []))
    error_message = "Each environment of ci.environments is another one, so that no job may do what another needs approval for."
  }
}

variable "kept_pools" {
  type        = set(string)
  default     = []
  description = "Existing workload identity pools and providers, POOL/providers/PROVIDER, to import: those that an earlier `make undeploy` kept."
}
