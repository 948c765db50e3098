# APIs, and Google's own accounts in the project made before anything is granted to them.

resource "google_project_service" "api" {
  for_each = toset(module.plan.apis)

  service = each.value
  # Others in the project may use it too.
  disable_on_destroy = false
}

# An API that was just enabled refuses calls for a while: https://cloud.google.com/service-usage/docs/enable-disable
resource "time_sleep" "apis" {
  create_duration = "60s"
  triggers        = { apis = join(",", sort(keys(google_project_service.api))) }
}

# An agent that is asked for is given no roles by itself, so all it needs is in trainmaster/deploy/permissions.yaml:
# https://cloud.google.com/iam/docs/create-service-agents
# Vertex AI's brings the Custom Code Service Agent with it, which pulls the images of all jobs; without this it would
# come to be with the first job, and that job could not read its image.
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = toset(["aiplatform.googleapis.com", "eventarc.googleapis.com", "pubsub.googleapis.com", "cloudscheduler.googleapis.com"])

  service    = each.value
  depends_on = [time_sleep.apis]
}

data "google_storage_project_service_account" "gcs" {
  depends_on = [time_sleep.apis]
}
