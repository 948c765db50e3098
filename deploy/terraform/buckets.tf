# Buckets. Everything that is kept is in them, so `make undeploy` leaves them unless it is told otherwise.

# Those that an earlier `make undeploy` left are taken over; for what the state knows already this does nothing.
import {
  for_each = var.kept_buckets
  to       = google_storage_bucket.bucket[each.key]
  id       = each.value
}

locals {
  every_bucket = merge(module.plan.buckets, { builds = module.plan.builds_bucket })

  # Runs are recorded by replacing objects. What was replaced is kept for a while, for a record that was damaged is
  # mended from its earlier generation (docs/runbook.md), and a request that was overwritten before its event came
  # is still read by the generation that the event names.
  versioned = ["inbox", "ledger"]

  # Objects of the ledger that come and go all the time; of these, what was deleted is of no use to anybody.
  passing = sort(concat(["active/", "arrivals/", "slots/", "waiting/"], keys(module.plan.ledger_days)))
}

resource "google_storage_bucket" "bucket" {
  for_each = local.every_bucket

  name     = each.value
  location = var.region

  # Access is by account and bucket alone, and never public: the ledger is what users believe.
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  force_destroy = var.delete_buckets

  versioning {
    enabled = contains(local.versioned, each.key)
  }

  dynamic "lifecycle_rule" {
    for_each = contains(local.versioned, each.key) ? [30] : []
    content {
      action {
        type = "Delete"
      }
      condition {
        days_since_noncurrent_time = lifecycle_rule.value
        with_state                 = "ARCHIVED"
      }
    }
  }

  dynamic "lifecycle_rule" {
    for_each = each.key == "ledger" ? [1] : []
    content {
      action {
        type = "Delete"
      }
      condition {
        days_since_noncurrent_time = lifecycle_rule.value
        with_state                 = "ARCHIVED"
        matches_prefix             = local.passing
      }
    }
  }

  dynamic "lifecycle_rule" {
    for_each = { for prefix, days in module.plan.ledger_days : prefix => days if each.key == "ledger" }
    content {
      action {
        type = "Delete"
      }
      condition {
        age            = lifecycle_rule.value
        matches_prefix = [lifecycle_rule.key]
      }
    }
  }

  dynamic "lifecycle_rule" {
    for_each = each.key == "builds" ? [90] : []
    content {
      action {
        type = "Delete"
      }
      condition {
        age = lifecycle_rule.value
        # The functions' source is needed for as long as they are deployed.
        matches_prefix = ["trainer/"]
      }
    }
  }

  # Parts of uploads that nobody finished cost like objects and are seen in no listing.
  lifecycle_rule {
    action {
      type = "AbortIncompleteMultipartUpload"
    }
    condition {
      age = 7
    }
  }

  dynamic "encryption" {
    for_each = var.kms_key == null ? [] : [var.kms_key]
    content {
      default_kms_key_name = encryption.value
    }
  }

  depends_on = [google_project_service.api, google_kms_crypto_key_iam_member.agent]
}
