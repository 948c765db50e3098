output "buckets" {
  value       = { for role, bucket in google_storage_bucket.bucket : role => bucket.name }
  description = "Where to drop requests (inbox) and to find records (ledger), models and data."
}

output "trainer_account" {
  value       = google_service_account.account["trainer"].email
  description = "Jobs run as it whose request names no `service_account`: it reads data, reads and writes models, writes its log, and no more."
}

output "image_repository" {
  value       = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.images.repository_id}"
  description = "Where images for training jobs are pushed to."
}

output "dashboard" {
  value       = "https://console.cloud.google.com/monitoring/dashboards?project=${var.project}"
  description = "The dashboard is in this list."
}

output "build_account" {
  value       = google_service_account.account["build"].email
  description = "Builds run as it, as cloudbuild.yaml says. Whoever submits one must be allowed to act as it."
}
