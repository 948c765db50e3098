# The console for a team: a Cloud Run service that answers only what Identity-Aware Proxy has signed. It exists only with the
# variable `console`, and costs nothing while no page is open.
# Source: https://docs.cloud.google.com/run/docs/securing/identity-aware-proxy-cloud-run (read 2026-11)

locals {
  console_name = join("-", compact([var.deployment, "trainmaster-console"]))
  consoles     = var.console == null ? {} : { team = var.console }
}

resource "google_cloud_run_v2_service" "console" {
  for_each = local.consoles

  name                = local.console_name
  location            = var.region
  description         = "Trainmaster: the console for a team"
  ingress             = "INGRESS_TRAFFIC_ALL"
  iap_enabled         = true
  deletion_protection = false

  template {
    service_account                  = google_service_account.account["console"].email
    timeout                          = "300s"
    max_instance_request_concurrency = 80
    encryption_key                   = var.kms_key

    # Forms carry the token of the instance that showed them, so there is one at most.
    scaling {
      min_instance_count = 0
      max_instance_count = 1
    }

    containers {
      image   = each.value.image
      command = ["python3", "-m", "trainmaster"]
      args = [
        "web", "--port", "8080", "--context", join("/", compact([var.project, var.region, var.deployment])), "--iap-audience",
        "/projects/${data.google_project.this.number}/locations/${var.region}/services/${local.console_name}",
      ]

      resources {
        limits   = { cpu = "1", memory = "1Gi" }
        cpu_idle = true
      }
    }
  }

  lifecycle {
    precondition {
      condition     = contains(var.policy_keys, "console")
      error_message = "The policy must say who may act in the console. Write console: {people: {}} into functions/policy.yaml, for no one."
    }
  }

  depends_on = [time_sleep.grants, google_kms_crypto_key_iam_member.agent]
}

# Nothing but the proxy may call the service.
resource "google_cloud_run_v2_service_iam_member" "iap" {
  for_each = local.consoles

  project  = var.project
  location = var.region
  name     = google_cloud_run_v2_service.console[each.key].name
  role     = "roles/run.invoker"
  member   = "serviceAccount:${google_project_service_identity.agent["iap.googleapis.com"].email}"
}

resource "google_iap_web_cloud_run_service_iam_member" "people" {
  for_each = var.console == null ? [] : var.console.members

  project                = var.project
  location               = var.region
  cloud_run_service_name = google_cloud_run_v2_service.console["team"].name
  role                   = "roles/iap.httpsResourceAccessor"
  member                 = each.value
}
