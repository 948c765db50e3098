output "buckets" {
  value       = local.buckets
  description = "Bucket names by the role that the topology gives them."
}

output "builds_bucket" {
  value       = local.builds_bucket
  description = "Bucket of the functions' sources and of what builds leave."
}

output "ledger_days" {
  value       = local.ledger_days
  description = "Days after which marks in the ledger are removed, by the beginning of their names."
}

output "topics" {
  value       = local.topics
  description = "Topic ids by role."
}

output "subscriptions" {
  value       = local.subscriptions
  description = "Subscriptions of nobody's function."
}

output "sinks" {
  value       = local.sinks
  description = "Log sinks, each with its filter's text."
}

output "schedules" {
  value       = local.schedules
  description = "Messages that come by the clock."
}

output "functions" {
  value       = local.functions
  description = "Functions with their environment, and the policy of their triggers' subscriptions."
}

output "triggers" {
  value       = local.triggers
  description = "What each trigger hears of, and the function that it calls."
}

output "repository" {
  value       = local.repository
  description = "Repository of Artifact Registry that holds the trainer's image."
}

output "apis" {
  value       = local.permissions.apis
  description = "Services that are enabled."
}

output "accounts" {
  value       = local.accounts
  description = "Service accounts that are created."
}

output "agents" {
  value       = local.agents
  description = "Google's own accounts that are granted something."
}

output "custom_roles" {
  value       = local.custom_roles
  description = "Roles that are created."
}

output "grants" {
  value       = local.grants
  description = "Grants by the kind of thing they are on, each with account, role and the thing's name."
}

output "printed" {
  value       = local.printed
  description = "Filter of what the functions print."
}

output "metrics" {
  value       = local.metrics
  description = "Counters of log lines."
}

output "alerts" {
  value       = local.alerts
  description = "What raises an alert, by name."
}

output "dashboard" {
  value       = local.dashboard
  description = "The dashboard, as Cloud Monitoring takes it."
}
