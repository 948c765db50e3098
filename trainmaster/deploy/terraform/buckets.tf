# Buckets. Everything that is kept is in them, so `make undeploy` leaves them unless it is told otherwise.

# Those that an earlier `make undeploy` left are taken over; for what the state knows already this does nothing.
import {
  for_each = var.kept_buckets
  to       = google_storage_bucket.bucket[each.key]
  id       = each.value
}

locals {
  every_bucket = merge(module.plan.buckets, { builds = module.plan.builds_bucket })

  # Objects of the ledger that come and go all the time; of these, what was deleted is of no use to anybody.
  passing = sort(concat(["active/", "arrivals/", "slots/", "waiting/"], keys(module.plan.ledger_days)))

  # Buckets that keep what was replaced or deleted: for how many days, and for objects of which beginnings alone.
  # Runs are recorded by replacing objects, and a record that was damaged is mended from its earlier generation
  # (docs/how-to/runbook.md); a request that was overwritten before its event came is still read by the generation that the
  # event names.
  earlier = {
    inbox  = [{ days = 30, beginnings = null }]
    ledger = [{ days = 30, beginnings = null }, { days = 1, beginnings = local.passing }]
  }

  # Days after which objects go, by the beginning of their names. Of the builds', only what builds leave: the
  # functions' source is needed for as long as they are deployed.
  days = {
    ledger = module.plan.ledger_days
    builds = { "trainer/" = 90 }
  }
}

resource "google_storage_bucket" "bucket" {
  for_each = local.every_bucket

  name     = each.value
  location = var.region

  # Access is by account and bucket alone, and never public: the ledger is what users believe.
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  force_destroy = var.delete_buckets

  # Soft delete, 7 days by default, bills every checkpoint that was overwritten and every marker that was removed.
  # What must be had back is in the buckets with versions. https://cloud.google.com/storage/docs/soft-delete
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  versioning {
    enabled = contains(keys(local.earlier), each.key)
  }

  dynamic "lifecycle_rule" {
    for_each = lookup(local.earlier, each.key, [])
    content {
      action {
        type = "Delete"
      }
      condition {
        days_since_noncurrent_time = lifecycle_rule.value.days
        with_state                 = "ARCHIVED"
        matches_prefix             = lifecycle_rule.value.beginnings
      }
    }
  }

  dynamic "lifecycle_rule" {
    for_each = lookup(local.days, each.key, {})
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

  depends_on = [time_sleep.apis, google_kms_crypto_key_iam_member.agent]
}
