# Everything that Trainmaster is in a project. `trainmaster deploy` checks, and applies a copy of it with the
# functions' source beside it: .trainmaster/deploy/PROJECT-REGION/terraform, where terraform can be run by hand too.

terraform {
  # 1.7: import blocks with for_each.
  required_version = ">= 1.7"

  required_providers {
    # Exact versions, so that a deployment is the same tomorrow. docs/how-to/deploy.md tells how to change them and how
    # to make a lock file, which adds their checksums.
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

  # The bucket is named on the command line, for backends take no variables.
  backend "gcs" {
    prefix = "trainmaster"
  }
}

provider "google" {
  project = var.project
  region  = var.region
  # Credentials that come from gcloud are of a project of Google's, whose quota some services refuse to use. This makes
  # every call count for our project; `trainmaster deploy` enables the two APIs that are called before all others.
  # Source: user_project_override in https://registry.terraform.io/providers/hashicorp/google/latest/docs/guides/provider_reference
  user_project_override = true
  billing_project       = var.project
  # On whatever takes labels, for reports of costs.
  default_labels = { app = "trainmaster" }
}

# For google_project_service_identity, which only this one has.
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
  project_number  = data.google_project.this.number
  watched_buckets = var.watched_buckets
}
