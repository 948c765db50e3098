# Buckets. They hold all lasting data, so `make undeploy` keeps them by default.

# Imports the buckets that an earlier `make undeploy` kept. Those already in the state are not affected.
import {
  for_each = var.kept_buckets
  to       = google_storage_bucket.bucket[each.key]
  id       = each.value
}

locals {
  every_bucket = merge(module.plan.buckets, { builds = module.plan.builds_bucket })

  # Objects of the ledger whose replaced and deleted versions have no use: most are short-lived, and an index row
  # repeats its record.
  passing = sort(concat(["active/", "arrivals/", "index/", "retention.json", "slots/", "waiting/"], keys(module.plan.ledger_days)))

  # Days for which a bucket keeps replaced and deleted objects, optionally restricted to some prefixes.
  # Each change of a run replaces its record, and a damaged record is repaired from its earlier generation
  # (docs/how-to/runbook.md). A request that was overwritten before its event arrived is still read by the generation
  # that the event names.
  earlier = {
    inbox  = [{ days = 30, beginnings = null }]
    ledger = [{ days = 30, beginnings = null }, { days = 1, beginnings = local.passing }]
    # The functions never replace or delete a copy; a copy that an operator deletes by mistake can be restored.
    champions = [{ days = 30, beginnings = null }]
  }

  # Days after which objects are deleted, by prefix. In the builds bucket only build outputs expire: the functions'
  # source is needed for as long as they are deployed.
  days = {
    ledger = module.plan.ledger_days
    # "source/": what `gcloud builds submit --gcs-source-staging-dir` uploads.
    builds = { "trainer/" = 90, "source/" = 7 }
  }
}

resource "google_storage_bucket" "bucket" {
  for_each = local.every_bucket

  name     = each.value
  location = var.region

  # Access is granted per account and bucket only, and never public: users rely on the ledger.
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  force_destroy = var.delete_buckets

  # Soft delete, 7 days by default in Cloud Storage and off here, bills every overwritten checkpoint and every removed marker. The buckets whose
  # objects must be recoverable keep versions instead. https://cloud.google.com/storage/docs/soft-delete
  soft_delete_policy {
    retention_duration_seconds = var.soft_delete_s
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

  # Parts of unfinished uploads cost as much as objects, and listings do not show them.
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

# The folders that single accounts may use. A folder that is destroyed leaves its objects in the bucket.
resource "google_storage_managed_folder" "folder" {
  for_each = module.plan.folders

  bucket        = google_storage_bucket.bucket[each.value.bucket].name
  name          = each.value.name
  force_destroy = true
}

# The single objects of the teams, each with that of a folder of its name; trainmaster/deploy/permissions.yaml says why.
resource "google_storage_bucket_object" "marker" {
  for_each = merge([
    for grant in module.plan.grants.object : {
      for name in [grant.object, "${grant.object}/"] :
      "${grant.name}/${name}" => { bucket = grant.name, name = name }
    }
  ]...)

  bucket  = google_storage_bucket.bucket[each.value.bucket].name
  name    = each.value.name
  content = "\n" # the provider refuses an empty one
}

# What clients of this deployment cannot see otherwise: schemas/deployment.v1.schema.json. `trainmaster deploy` writes
# the file beside this folder. Those who can read the ledger can read it.
resource "google_storage_bucket_object" "deployment" {
  name          = basename(local.deployment_file)
  bucket        = google_storage_bucket.bucket["ledger"].name
  source        = local.deployment_file
  content_type  = "application/json"
  cache_control = "no-store" # a later deployment is seen at once
}

locals {
  deployment_file = "${path.module}/../deployment.json"
}
