# With a customer-managed key (var.kms_key), the services that encrypt with it need permission to use it.

locals {
  # Source: https://cloud.google.com/functions/docs/securing/cmek, https://cloud.google.com/pubsub/docs/encryption,
  # https://cloud.google.com/storage/docs/encryption/using-customer-managed-keys
  encrypting = var.kms_key == null ? [] : [
    "gcf-admin-robot",
    "gcp-sa-artifactregistry",
    "gcp-sa-eventarc",
    "gcp-sa-pubsub",
    "gs-project-accounts",
    "serverless-robot-prod",
  ]
}

resource "google_project_service_identity" "encrypting" {
  provider = google-beta
  for_each = var.kms_key == null ? [] : toset(["artifactregistry.googleapis.com", "cloudfunctions.googleapis.com", "run.googleapis.com"])

  service    = each.value
  depends_on = [time_sleep.apis]
}

# Vertex AI encrypts what a job keeps with the key that its request names.
# Source: https://cloud.google.com/vertex-ai/docs/general/cmek
resource "google_kms_crypto_key_iam_member" "agent_of_jobs" {
  for_each = var.job_keys

  crypto_key_id = each.value
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:${module.plan.agents["aiplatform"]}"

  depends_on = [google_project_service_identity.agent]
}

resource "google_kms_crypto_key_iam_member" "agent" {
  for_each = toset(local.encrypting)

  crypto_key_id = var.kms_key
  role          = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
  member        = "serviceAccount:service-${data.google_project.this.number}@${each.value}.iam.gserviceaccount.com"

  depends_on = [
    google_project_service_identity.agent,
    google_project_service_identity.encrypting,
    data.google_storage_project_service_account.gcs,
  ]
}
