# Grants from trainmaster/deploy/permissions.yaml: one entry for each account, role and resource.

locals {
  permissions = yamldecode(file("${path.module}/../../permissions.yaml"))

  # Account ids have 6 to 30 characters, so the prefix is short.
  accounts = merge(
    { for name in keys(local.functions) : name => { id = "tm-${name}", what = "the function ${name}" } },
    { for name, account in local.permissions.accounts : name => { id = "tm-${name}", what = account.what } }
  )

  custom_roles = {
    for name, role in local.permissions.roles : name => role if try(role.custom, false)
  }

  # Google's service agents in this project.
  agents = {
    for name, agent in local.permissions.agents :
    name => "service-${var.project_number}@${agent.domain}.iam.gserviceaccount.com"
  }

  # Every grant with each of its accounts and resources; `functions` stands for the accounts of all functions.
  each_grant = flatten([
    for grant in local.permissions.grants : [
      for account in distinct(flatten([
        for name in grant.accounts : name == "functions" ? keys(local.functions) : [name]
        ])) : [
        for thing in values(grant.thing)[0] == "functions" ? keys(local.functions) : [values(grant.thing)[0]] : {
          account = account
          role = (
            contains(keys(local.custom_roles), grant.role)
            ? "projects/${var.project}/roles/${grant.role}"
            : grant.role
          )
          kind = keys(grant.thing)[0]
          name = thing
        }
      ]
    ]
  ])

  grants = {
    for kind in ["project", "bucket", "topic", "account", "function", "subscription"] : kind => {
      for grant in local.each_grant :
      "${grant.account}/${reverse(split("/", grant.role))[0]}/${grant.name}" => grant
      if grant.kind == kind
    }
  }
}
