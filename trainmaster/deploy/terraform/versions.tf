# Everything that Trainmaster is in a project. `trainmaster deploy` checks, and applies a copy of it with the
# functions' source beside it: .trainmaster/deploy/PROJECT-REGION/terraform, where terraform can be run by hand too.

terraform {
  # 1.7: import blocks with for_each.
  required_version = ">= 1.7"

  required_providers {
    # 7.14: retry_policy of google_eventarc_trigger.
    google = {
      source  = "hashicorp/google"
      version = "~> 7.14"
    }
    google-beta = {
      source  = "hashicorp/google-beta"
      version = "~> 7.14"
    }
    archive = {
      source  = "hashicorp/archive"
      version = "~> 2.4"
    }
    time = {
      source  = "hashicorp/time"
      version = "~> 0.11"
    }
  }

  # The bucket is named on the command line, for backends take no variables.
  backend "gcs" {
    prefix = "trainmaster"
  }
}

provider "google" {
  project = var.project
  region  = var.region
  # On whatever takes labels, for reports of costs.
  default_labels = { app = "trainmaster" }
}

# For google_project_service_identity, which only this one has.
provider "google-beta" {
  project = var.project
  region  = var.region
}

data "google_project" "this" {
  project_id = var.project
}

module "plan" {
  source = "./plan"

  project         = var.project
  region          = var.region
  project_number  = data.google_project.this.number
  watched_buckets = var.watched_buckets
}
