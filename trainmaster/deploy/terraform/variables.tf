variable "project" {
  type        = string
  description = "Project id."

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{4,28}[a-z0-9]$", var.project))
    error_message = "A project id has 6 to 30 lower-case letters, digits and dashes, and begins with a letter."
  }
}

variable "region" {
  type        = string
  description = "Region of everything: Vertex AI, buckets, functions and triggers."
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

variable "scheduler_region" {
  type        = string
  default     = null
  description = "Where the schedules are, for regions that Cloud Scheduler lacks. The region by default."
}

variable "kept_buckets" {
  type        = map(string)
  default     = {}
  description = "Buckets that exist in this project and are taken over, by role: those that an earlier `make undeploy` left."
}

variable "kept_roles" {
  type        = set(string)
  default     = []
  description = "Custom roles that exist in this project and are taken over: those that an earlier `make undeploy` left."
}

variable "foreign_topics" {
  type        = set(string)
  default     = []
  description = "Roles of topics that exist and belong to others: used, never created nor deleted. Only `images`, whose id Artifact Registry dictates."

  validation {
    condition     = length(setsubtract(var.foreign_topics, ["images"])) == 0
    error_message = "Only the topic `images` may belong to others."
  }
}

variable "watched_buckets" {
  type        = set(string)
  default     = []
  description = "Buckets beside our own that rules watch. They must be in the region; grant whoever trains to read them."
}

variable "delete_buckets" {
  type        = bool
  default     = false
  description = "Buckets are deleted with all that is in them when they are destroyed. `make undeploy BUCKETS=delete` sets it."
}

variable "alert_emails" {
  type        = set(string)
  default     = []
  description = "Who is told when an alert policy fires. Without any, incidents are seen in the console alone."
}

variable "kms_key" {
  type        = string
  default     = null
  description = "Key that encrypts buckets, topics, images and functions: projects/P/locations/REGION/keyRings/R/cryptoKeys/K. Google's own keys by default."

  validation {
    condition     = var.kms_key == null || can(regex("^projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+$", var.kms_key))
    error_message = "Give the key's full resource name, projects/P/locations/REGION/keyRings/R/cryptoKeys/K."
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
  description = "All that the functions send goes through the connector, not only what is for private addresses."
}
