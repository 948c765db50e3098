# The functions, all from one source directory.

data "archive_file" "source" {
  type        = "zip"
  source_dir  = "${path.module}/${var.source_dir}"
  output_path = "${path.module}/.terraform/functions.zip"
}

resource "google_storage_bucket_object" "source" {
  # The name contains the content's hash, so that functions are rebuilt only when their source has changed.
  name   = "functions/${data.archive_file.source.output_sha256}.zip"
  bucket = google_storage_bucket.bucket["builds"].name
  source = data.archive_file.source.output_path
}

resource "google_cloudfunctions2_function" "function" {
  for_each = module.plan.functions

  name         = each.value.name
  location     = var.region
  description  = "Trainmaster: ${each.value.entry_point}"
  kms_key_name = var.kms_key

  build_config {
    runtime         = var.runtime
    entry_point     = each.value.entry_point
    service_account = google_service_account.account["build"].id
    worker_pool     = var.build_worker_pool
    # With a customer-managed key, images are kept in a repository that is encrypted with it.
    docker_repository = var.kms_key == null ? null : google_artifact_registry_repository.images.id

    source {
      storage_source {
        bucket = google_storage_bucket_object.source.bucket
        object = google_storage_bucket_object.source.name
      }
    }
  }

  service_config {
    # A run's lease lasts longer than this: trainmaster/orchestrator/settings.py reads the same number.
    timeout_seconds                  = each.value.timeout_s
    available_memory                 = each.value.memory
    available_cpu                    = "1" # with less, an instance handles only one event at a time
    max_instance_request_concurrency = each.value.concurrency
    min_instance_count               = 0
    max_instance_count               = each.value.max_instances
    environment_variables            = each.value.environment
    service_account_email            = google_service_account.account[each.key].email
    # A new version of a secret takes effect without a deployment, because files are read when they are needed.
    dynamic "secret_volumes" {
      for_each = each.value.secrets
      content {
        mount_path = "${each.value.environment.TRAINMASTER_SECRETS}/${secret_volumes.value}"
        project_id = var.project
        secret     = secret_volumes.value
        versions {
          version = "latest"
          path    = "value"
        }
      }
    }

    # Eventarc's events are internal traffic.
    ingress_settings               = "ALLOW_INTERNAL_ONLY"
    all_traffic_on_latest_revision = true

    vpc_connector                 = var.vpc_connector
    vpc_connector_egress_settings = var.vpc_connector == null ? null : var.vpc_all_traffic ? "ALL_TRAFFIC" : "PRIVATE_RANGES_ONLY"

    # Without a connector: https://cloud.google.com/functions/docs/running/direct-vpc
    direct_vpc_egress = var.vpc_subnetwork == null ? null : var.vpc_all_traffic ? "VPC_EGRESS_ALL_TRAFFIC" : "VPC_EGRESS_PRIVATE_RANGES_ONLY"
    dynamic "direct_vpc_network_interface" {
      for_each = var.vpc_subnetwork == null ? [] : [var.vpc_subnetwork]
      content {
        subnetwork = direct_vpc_network_interface.value
      }
    }
  }

  lifecycle {
    precondition {
      condition     = var.vpc_connector == null || var.vpc_subnetwork == null
      error_message = "vpc_connector and vpc_subnetwork exclude each other: a function has one way into a VPC. Remove one of them."
    }
    precondition {
      # A lease is a minute longer than the timeout, and a subscription's acknowledgement deadline is at most 600 s.
      condition     = each.value.timeout_s <= 540
      error_message = "The function ${each.key} has a timeout of ${each.value.timeout_s} s; at most 540 s are allowed, because Pub/Sub redelivers events after 600 s at the latest. Lower its timeout_s in topology.yaml."
    }
  }

  depends_on = [
    time_sleep.grants,
    google_kms_crypto_key_iam_member.agent,
  ]
}
