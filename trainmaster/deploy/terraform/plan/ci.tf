# Who may act for CI: jobs of GitHub Actions, which prove by a token of GitHub from which repository and environment they
# come. Repositories are known by their number: a name can be given up, and taken by others.
# Sources: https://cloud.google.com/iam/docs/best-practices-for-using-workload-identity-federation and
# https://docs.github.com/actions/reference/security/oidc

locals {
  ci_roles = var.ci == null ? [] : concat(["plan"], keys(var.ci.environments))

  # An environment counts only together with the repository. Jobs without one have none to tell.
  ci_pools = var.ci == null ? {} : {
    "${local.prefix}trainmaster" = {
      condition = "assertion.repository_id == '${var.ci.repository_id}' && assertion.event_name != 'pull_request_target'"
      mapping = {
        # At most 127 bytes, which GitHub's own subject with the name of a branch can exceed.
        "google.subject"          = "assertion.repository_id + '/' + assertion.run_id"
        "attribute.repository_id" = "assertion.repository_id"
        "attribute.environment"   = "assertion.repository_id + '/' + (has(assertion.environment) ? assertion.environment : '')"
      }
    }
  }

  # The jobs that may act as each account.
  ci_principals = {
    for role in local.ci_roles : role => join("/", [
      "principalSet://iam.googleapis.com/projects/${var.project_number}/locations/global/workloadIdentityPools/${local.prefix}trainmaster",
      try(
        "attribute.environment/${var.ci.repository_id}/${var.ci.environments[role]}",
        "attribute.repository_id/${var.ci.repository_id}"
      )
    ])
  }
}
