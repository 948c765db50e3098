# Repository of the trainer's image. Artifact Registry publishes pushes to the topic `gcr`, which it finds by name.

resource "google_artifact_registry_repository" "images" {
  location      = var.region
  repository_id = module.plan.repository
  description   = "Images that training jobs run"
  format        = "DOCKER"
  kms_key_name  = var.kms_key

  # Untagged images are deleted after 90 days, except the last ten: runs name images by digest. Images from
  # cloudbuild.yaml keep the build's id as a tag, so they stay.
  cleanup_policies {
    id     = "old-and-untagged"
    action = "DELETE"
    condition {
      tag_state  = "UNTAGGED"
      older_than = "7776000s"
    }
  }
  cleanup_policies {
    id     = "the-last-ten"
    action = "KEEP"
    most_recent_versions {
      keep_count = 10
    }
  }

  depends_on = [time_sleep.apis, google_kms_crypto_key_iam_member.agent]
}
