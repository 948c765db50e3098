output "buckets" {
  value       = local.buckets
  description = "Bucket names by their role in the topology."
}

output "builds_bucket" {
  value       = local.builds_bucket
  description = "Bucket of the functions' source and of build outputs."
}

output "ledger_days" {
  value       = local.ledger_days
  description = "Days after which marks in the ledger are removed, by prefix."
}

output "topics" {
  value       = local.topics
  description = "Topic ids by role."
}

output "subscriptions" {
  value       = local.subscriptions
  description = "Subscriptions that belong to no function."
}

output "sinks" {
  value       = local.sinks
  description = "Log sinks, each with the text of its filter."
}

output "schedules" {
  value       = local.schedules
  description = "Scheduled messages."
}

output "functions" {
  value       = local.functions
  description = "Functions with their environment, and the policy of their triggers' subscriptions."
}

output "triggers" {
  value       = local.triggers
  description = "Triggers, each with the events that it matches and the function that it calls."
}

output "metric_folder" {
  value       = local.metric_folder
  description = "How the names of log-based metrics begin."
}

output "title" {
  value       = local.title
  description = "How the titles of alerts, channels and the dashboard begin."
}

output "repository" {
  value       = local.repository
  description = "Artifact Registry repository of the trainer's image."
}

output "apis" {
  value       = local.permissions.apis
  description = "APIs to enable."
}

output "accounts" {
  value       = local.accounts
  description = "Service accounts to create."
}

output "agents" {
  value       = local.agents
  description = "Google's service agents that are granted roles."
}

output "custom_roles" {
  value       = local.custom_roles
  description = "Custom roles to create."
}

output "grants" {
  value       = local.grants
  description = "Grants by kind of resource, each with its account, role and resource name."
}

output "data_grants" {
  value       = local.data_grants
  description = "Grants on buckets outside the deployment, each with its bucket, account and role."
}

output "outsiders" {
  value       = local.outsiders
  description = "People and groups that are members of teams."
}

output "folders" {
  value       = local.folders
  description = "Managed folders to create, each with its bucket's role and its name."
}

output "printed" {
  value       = local.printed
  description = "Filter that matches the functions' log lines."
}

output "metrics" {
  value       = local.metrics
  description = "Log-based metrics."
}

output "alerts" {
  value       = local.alerts
  description = "Alert policies by name."
}

output "dashboard" {
  value       = local.dashboard
  description = "The dashboard in Cloud Monitoring's format."
}

output "notices" {
  value       = local.notices
  description = "Receivers of notices by e-mail, each with its addresses and the filter of its log lines."
}

output "notice_addresses" {
  value       = local.notice_addresses
  description = "Addresses of all of them."
}

output "ci_pools" {
  value       = local.ci_pools
  description = "Workload identity pools by id: what their provider requires of a token, and what it makes of it."
}

output "ci_principals" {
  value       = local.ci_principals
  description = "By role of CI, the jobs that may act as its account."
}
