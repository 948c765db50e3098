# APIs, and Google's service agents in the project, which must exist before they are granted roles.

resource "google_project_service" "api" {
  for_each = toset(module.plan.apis)

  service = each.value
  # Other software in the project may use the API too.
  disable_on_destroy = false
}

# A newly enabled API rejects calls for a while: https://cloud.google.com/service-usage/docs/enable-disable
resource "time_sleep" "apis" {
  create_duration = "60s"
  triggers        = { apis = join(",", sort(keys(google_project_service.api))) }
}

# A service agent created on request gets no roles automatically, so trainmaster/deploy/permissions.yaml lists all that
# it needs: https://cloud.google.com/iam/docs/create-service-agents
# This creates one agent of each service. Vertex AI's others, such as the one that pulls images, come with its first job;
# `trainmaster deploy` asks for them when everything else is deployed (trainmaster/deploy/agents.py).
resource "google_project_service_identity" "agent" {
  provider = google-beta
  for_each = toset(concat(
    ["aiplatform.googleapis.com", "eventarc.googleapis.com", "pubsub.googleapis.com", "cloudscheduler.googleapis.com"],
    var.console == null ? [] : ["iap.googleapis.com"]
  ))

  service    = each.value
  depends_on = [time_sleep.apis]
}

data "google_storage_project_service_account" "gcs" {
  depends_on = [time_sleep.apis]
}
