output "buckets" {
  value       = { for role, bucket in google_storage_bucket.bucket : role => bucket.name }
  description = "Buckets by role: inbox for requests, ledger for records, models and data."
}

output "trainer_account" {
  value       = google_service_account.account["trainer"].email
  description = "Account of jobs whose request has no `service_account`. It can only read data, read and write models, and write logs."
}

output "image_repository" {
  value       = "${var.region}-docker.pkg.dev/${var.project}/${google_artifact_registry_repository.images.repository_id}"
  description = "Repository to push images for training jobs to."
}

output "console" {
  value       = one([for service in google_cloud_run_v2_service.console : service.uri])
  description = "Address of the console for a team; null without one."
}

output "dashboard" {
  value       = "https://console.cloud.google.com/monitoring/dashboards?project=${var.project}"
  description = "List of the project's dashboards, with Trainmaster's in it."
}

output "build_account" {
  value       = google_service_account.account["build"].email
  description = "Account that builds run as (cloudbuild.yaml). Users who submit a build need permission to act as it."
}

output "ci" {
  value = {
    workload_identity_provider = one([for pool in google_iam_workload_identity_pool_provider.ci : pool.name])
    accounts                   = { for role in keys(module.plan.ci_principals) : role => google_service_account.account["ci-${role}"].email }
  }
  description = "What workflows need (docs/how-to/run-from-ci.md): the provider, and the account of each role."
}
