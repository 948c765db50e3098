# Service accounts, roles and grants: everything in trainmaster/deploy/permissions.yaml, and nothing else.

# An account that is made again under a deleted one's name is another identity, and what users granted to the first does
# nothing for it. So `make undeploy` leaves the accounts, and this imports them again.
# Source: https://cloud.google.com/iam/docs/service-accounts-delete-undelete
import {
  for_each = var.kept_accounts
  to       = google_service_account.account[each.key]
  id       = "projects/${var.project}/serviceAccounts/${module.plan.accounts[each.key].id}@${var.project}.iam.gserviceaccount.com"
}

resource "google_service_account" "account" {
  for_each = module.plan.accounts

  account_id   = each.value.id
  display_name = "${module.plan.title}: ${each.value.what}"
  # That of a team which the policy no longer names stays too.
  deletion_policy = "ABANDON"

  depends_on = [time_sleep.apis]
}

# The id of a deleted role stays reserved for 37 days, so `make undeploy` leaves the roles, and this imports them again.
# Source: https://cloud.google.com/iam/docs/creating-custom-roles#deleting-custom-role
import {
  for_each = var.kept_roles
  to       = google_project_iam_custom_role.role[each.key]
  id       = "projects/${var.project}/roles/${each.key}"
}

resource "google_project_iam_custom_role" "role" {
  for_each = module.plan.custom_roles

  role_id     = each.key
  title       = each.value.title
  description = each.value.description
  permissions = each.value.permissions

  depends_on = [time_sleep.apis]
}

locals {
  members = merge(
    { for name, account in google_service_account.account : name => "serviceAccount:${account.email}" },
    { for name, email in module.plan.agents : name => "serviceAccount:${email}" },
    { for member in module.plan.outsiders : member => member }
  )

  project_grants = {
    for key, grant in module.plan.grants.project : key => grant
    if !contains(keys(module.plan.agents), grant.account)
  }
  agent_grants = {
    for key, grant in module.plan.grants.project : key => grant
    if contains(keys(module.plan.agents), grant.account)
  }
}

resource "google_project_iam_member" "project" {
  for_each = local.project_grants

  project = var.project
  role    = each.value.role
  member  = local.members[each.value.account]

  depends_on = [google_project_iam_custom_role.role]
}

# Google's service agents serve the whole project. `make undeploy` leaves their roles in place, because the project
# may use Vertex AI, Pub/Sub and Eventarc for other purposes too.
resource "google_project_iam_member" "agent" {
  for_each = local.agent_grants

  project = var.project
  role    = each.value.role
  member  = local.members[each.value.account]

  depends_on = [google_project_service_identity.agent, data.google_storage_project_service_account.gcs]
}

resource "google_storage_bucket_iam_member" "bucket" {
  for_each = module.plan.grants.bucket

  bucket = google_storage_bucket.bucket[each.value.name].name
  role   = each.value.role
  member = local.members[each.value.account]

  depends_on = [google_project_iam_custom_role.role]
}

resource "google_storage_bucket_iam_member" "data" {
  for_each = module.plan.data_grants

  bucket = each.value.bucket
  role   = each.value.role
  member = local.members[each.value.account]
}

# A role on a managed folder covers the objects whose names begin with the folder's, and no others of its bucket.
resource "google_storage_managed_folder_iam_member" "folder" {
  for_each = module.plan.grants.folder

  bucket         = google_storage_managed_folder.folder["${each.value.name}/${each.value.folder}"].bucket
  managed_folder = google_storage_managed_folder.folder["${each.value.name}/${each.value.folder}"].name
  role           = each.value.role
  member         = local.members[each.value.account]
}

# A role on one object of a bucket.
resource "google_storage_bucket_iam_member" "object" {
  for_each = module.plan.grants.object

  bucket = google_storage_bucket_object.marker["${each.value.name}/${each.value.object}"].bucket
  role   = each.value.role
  member = local.members[each.value.account]

  condition {
    title      = "only ${each.value.object}"
    expression = "resource.name == 'projects/_/buckets/${local.every_bucket[each.value.name]}/objects/${each.value.object}'"
  }

  depends_on = [google_project_iam_custom_role.role]
}

resource "google_pubsub_topic_iam_member" "topic" {
  for_each = { for key, grant in module.plan.grants.topic : key => grant if grant.account != "monitoring" }

  topic  = local.topic_ids[each.value.name]
  role   = each.value.role
  member = local.members[each.value.account]

  depends_on = [google_project_service_identity.agent]
}

# The first notification channel creates Monitoring's agent, shortly after the channel itself; until then, a grant to it is
# refused. If a minute is not enough, the deployment fails at its end, without anything else, and can be repeated.
# Source: https://cloud.google.com/monitoring/support/notification-options
resource "time_sleep" "monitoring_agent" {
  create_duration = "60s"
  triggers        = { channel = google_monitoring_notification_channel.alerts.name }
}

resource "google_pubsub_topic_iam_member" "monitoring" {
  for_each = { for key, grant in module.plan.grants.topic : key => grant if grant.account == "monitoring" }

  topic  = local.topic_ids[each.value.name]
  role   = each.value.role
  member = local.members[each.value.account]

  depends_on = [time_sleep.monitoring_agent]
}

resource "google_service_account_iam_member" "account" {
  for_each = module.plan.grants.account

  service_account_id = google_service_account.account[each.value.name].name
  role               = each.value.role
  member             = local.members[each.value.account]
}

# The secrets are made by people; their values are in no state.
resource "google_secret_manager_secret_iam_member" "secret" {
  for_each = module.plan.grants.secret

  project   = var.project
  secret_id = each.value.name
  role      = each.value.role
  member    = local.members[each.value.account]

  depends_on = [time_sleep.apis]
}

# A grant takes effect after about two minutes. Until then, function builds cannot read their source and fail, and
# Eventarc rejects triggers whose account cannot receive events.
# Sources: https://cloud.google.com/iam/docs/access-change-propagation and
# https://cloud.google.com/eventarc/docs/troubleshooting
resource "time_sleep" "grants" {
  create_duration = "120s"
  triggers = {
    grants = sha256(join(",", sort(concat(
      keys(google_project_iam_member.project),
      keys(google_project_iam_member.agent),
      keys(google_storage_bucket_iam_member.bucket),
      keys(google_service_account_iam_member.account),
      keys(google_secret_manager_secret_iam_member.secret),
    ))))
  }
}

locals {
  function_grants = merge([
    for key, grant in module.plan.grants.function : {
      for name in keys(module.plan.functions) : "${key}/${name}" => merge(grant, { function = name })
    }
  ]...)
  subscription_grants = merge([
    for key, grant in module.plan.grants.subscription : {
      for name in keys(module.plan.triggers) : "${key}/${name}" => merge(grant, { trigger = name })
    }
  ]...)
}

# A 2nd gen function is a Cloud Run service of the same name.
resource "google_cloud_run_v2_service_iam_member" "function" {
  for_each = local.function_grants

  project  = var.project
  location = var.region
  name     = google_cloudfunctions2_function.function[each.value.function].name
  role     = each.value.role
  member   = local.members[each.value.account]
}

resource "google_pubsub_subscription_iam_member" "subscription" {
  for_each = local.subscription_grants

  subscription = google_eventarc_trigger.trigger[each.value.trigger].transport[0].pubsub[0].subscription
  role         = each.value.role
  member       = local.members[each.value.account]

  depends_on = [google_project_service_identity.agent]
}
