# All of Trainmaster's resources in a project. After its checks, `trainmaster deploy` applies a copy of this folder with
# the functions' source beside it: .trainmaster/deploy/PROJECT-REGION[-NAME]/terraform. You can run terraform there by hand too.

terraform {
  # 1.7: import blocks with for_each.
  required_version = ">= 1.7"

  required_providers {
    # Exact versions, so that deployments are reproducible. docs/reference/deployment.md explains how to change them and how
    # to create a lock file, which adds their checksums.
    google = {
      source  = "hashicorp/google"
      version = "7.46.0"
    }
    google-beta = {
      source  = "hashicorp/google-beta"
      version = "7.46.0"
    }
    archive = {
      source  = "hashicorp/archive"
      version = "2.7.1"
    }
    time = {
      source  = "hashicorp/time"
      version = "0.13.1"
    }
  }

  # The bucket is given on the command line, because backends cannot use variables.
  backend "gcs" {
    prefix = "trainmaster"
  }
}

provider "google" {
  project = var.project
  region  = var.region
  # gcloud's user credentials belong to one of Google's projects, whose quota some services refuse to use. This charges
  # every call to this project's quota. `trainmaster deploy` enables the two APIs that are called before all others.
  # Source: user_project_override in https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference
  user_project_override = true
  billing_project       = var.project
  # On every resource that supports labels, for cost reports.
  default_labels = merge({ app = "trainmaster" }, var.deployment == "" ? {} : { trainmaster_deployment = var.deployment })
}

# For google_project_service_identity, which only the beta provider has.
provider "google-beta" {
  project               = var.project
  region                = var.region
  user_project_override = true
  billing_project       = var.project
}

data "google_project" "this" {
  project_id = var.project
}

module "plan" {
  source = "./plan"

  project         = var.project
  region          = var.region
  deployment      = var.deployment
  project_number  = data.google_project.this.number
  watched_buckets = var.watched_buckets
  data_buckets    = var.data_buckets
  teams           = var.teams
  notify          = var.notify
  policy_keys     = var.policy_keys
  ci              = var.ci
}
