# Where the trainer's image is kept. Pushes are told on the topic `gcr`, which Artifact Registry finds by its name.

resource "google_artifact_registry_repository" "images" {
  location      = var.region
  repository_id = module.plan.repository
  description   = "Images that training jobs run"
  format        = "DOCKER"
  kms_key_name  = var.kms_key

  # Images that lost their tags go after 90 days, but never one of the last ten: runs name them by digest. Those of
  # cloudbuild.yaml keep a tag, the build's id, and stay.
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
