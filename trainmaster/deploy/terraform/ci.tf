# GitHub Actions without keys (plan/ci.tf says which jobs may do what). None of it exists unless var.ci is set.

# The ids of a deleted pool and provider stay reserved for 30 days, so nothing deletes them, and this imports them again.
# Source: https://cloud.google.com/iam/docs/manage-workload-identity-pools-providers
import {
  for_each = toset([for id in var.kept_pools : id if !strcontains(id, "/")])
  to       = google_iam_workload_identity_pool.ci[each.key]
  id       = "projects/${var.project}/locations/global/workloadIdentityPools/${each.key}"
}

import {
  for_each = { for id in var.kept_pools : split("/", id)[0] => id if strcontains(id, "/") }
  to       = google_iam_workload_identity_pool_provider.ci[each.key]
  id       = "projects/${var.project}/locations/global/workloadIdentityPools/${each.value}"
}

resource "google_iam_workload_identity_pool" "ci" {
  for_each = module.plan.ci_pools

  workload_identity_pool_id = each.key
  display_name              = "Trainmaster: CI"
  description               = "Jobs of the repository that the deployment's settings name."
  # Without the grants below, it lets no job do anything.
  deletion_policy = "ABANDON"

  depends_on = [time_sleep.apis]
}

resource "google_iam_workload_identity_pool_provider" "ci" {
  for_each = module.plan.ci_pools

  workload_identity_pool_id          = google_iam_workload_identity_pool.ci[each.key].workload_identity_pool_id
  workload_identity_pool_provider_id = "github"
  display_name                       = "GitHub Actions"
  attribute_condition                = each.value.condition
  attribute_mapping                  = each.value.mapping
  deletion_policy                    = "ABANDON"

  oidc {
    issuer_uri = "https://token.actions.githubusercontent.com"
  }
}

resource "google_service_account_iam_member" "ci" {
  for_each = module.plan.ci_principals

  service_account_id = google_service_account.account["ci-${each.key}"].name
  role               = "roles/iam.workloadIdentityUser"
  member             = each.value

  depends_on = [google_iam_workload_identity_pool_provider.ci]
}
