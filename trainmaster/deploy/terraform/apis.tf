# APIs, and Google's own accounts in the project made before anything is granted to them.

resource "google_project_service" "api" {
  for_each = toset(module.plan.apis)

  service = each.value
  # Others in the project may use it too.
  disable_on_destroy = false
}

# An agent that is asked for is given no roles by itself, so all it needs is in trainmaster/deploy/permissions.yaml:
# https://cloud.google.com/iam/docs/create-service-agents
# Vertex AI's brings the Custom Code Service Agent with it, which pulls the images of all jobs; without this it would
# come to be with the first job, and that job could not read its image.
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = toset(["aiplatform.googleapis.com", "eventarc.googleapis.com", "pubsub.googleapis.com", "cloudscheduler.googleapis.com"])

  service    = each.value
  depends_on = [google_project_service.api]
}

data "google_storage_project_service_account" "gcs" {
  depends_on = [google_project_service.api]
}
