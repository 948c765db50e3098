# Grants from trainmaster/deploy/permissions.yaml: one entry for each account, role and resource.

locals {
  permissions = yamldecode(file("${path.module}/../../permissions.yaml"))

  account_purposes = merge(
    { for name in keys(local.functions) : name => "the function ${name}" },
    { for name, account in local.permissions.accounts : name => account.what },
    { for team in keys(var.teams) : "trainer-${team}" => "training jobs of the team ${team}" },
    { for role in local.ci_roles : "ci-${role}" => local.permissions.ci[role].what },
    { for team in keys(var.teams) : "eval-${team}" => "jobs that score models of the team ${team}" }
  )

  # Account ids have 6 to 30 characters, so the prefix is short, and a longer id ends in a hash.
  accounts = {
    for name, what in local.account_purposes : name => {
      id = (
        length("tm-${local.prefix}${name}") <= 30
        ? "tm-${local.prefix}${name}"
        : "${substr("tm-${local.prefix}${name}", 0, 21)}-${substr(sha256("tm-${local.prefix}${name}"), 0, 8)}"
      )
      what = what
    }
  }

  # Names in team_grants that stand for accounts of a team, and how these begin.
  team_accounts = { team = "trainer", team_eval = "eval" }

  # Principals that exist outside the deployment: people and groups.
  outsiders = toset(flatten([for team in values(var.teams) : tolist(team.members)]))

  role_prefix = replace(local.prefix, "-", "_")
  custom_roles = {
    for name, role in local.permissions.roles : "${local.role_prefix}${name}" => role if try(role.custom, false)
  }

  # Google's service agents in this project.
  agents = {
    for name, agent in local.permissions.agents :
    name => "service-${var.project_number}@${agent.domain}.iam.gserviceaccount.com"
    if !can(agent.created_by)
  }

  # What stands for several things: the accounts of all functions, and the secrets of all receivers of notices.
  every = { functions = keys(local.functions), notify = tolist(local.secrets) }

  # Every grant with each of its accounts and resources.
  each_grant = flatten([
    for grant in local.permissions.grants : [
      for account in distinct(flatten([
        for name in grant.accounts : name == "functions" ? keys(local.functions) : [name]
        if !can(local.permissions.agents[name].created_by)
        ])) : [
        for thing in lookup(local.every, values(grant.thing)[0], [values(grant.thing)[0]]) : [
          for folder in try(grant.folders, [""]) : {
            account = account
            role = (
              try(local.permissions.roles[grant.role].custom, false)
              ? "projects/${var.project}/roles/${local.role_prefix}${grant.role}"
              : grant.role
            )
            kind   = folder == "" ? keys(grant.thing)[0] : "folder"
            name   = thing
            folder = folder
          }
        ]
      ]
    ] if !can(grant.policy) || contains(var.policy_keys, try(grant.policy, ""))
  ])

  # The same for CI.
  each_ci_grant = flatten([
    for role in local.ci_roles : [
      for grant in concat(
        local.permissions.ci[role].grants,
        [for name in keys(local.permissions.deployer) : { role = name, thing = { project = "all" } } if role == "deploy"]
        ) : {
        account = "ci-${role}"
        role = (
          try(local.permissions.roles[grant.role].custom, false)
          ? "projects/${var.project}/roles/${local.role_prefix}${grant.role}"
          : grant.role
        )
        kind   = keys(grant.thing)[0]
        name   = values(grant.thing)[0]
        folder = ""
      } if length(var.teams) == 0 || !can(grant.without_teams)
    ]
  ])

  # The same for each team, with an entry for each managed folder and each single object.
  each_team_grant = flatten([
    for team, settings in var.teams : [
      for grant in local.permissions.team_grants : [
        for account in flatten([
          for name in grant.accounts :
          name == "members" ? tolist(settings.members) : [
            can(local.team_accounts[name]) ? "${local.team_accounts[name]}-${team}" : name
          ]
          ]) : [
          for on in concat(
            [for folder in try(grant.folders, []) : { kind = "folder", folder = folder, object = "" }],
            [for object in try(grant.objects, []) : { kind = "object", folder = "", object = object }],
            can(grant.folders) || can(grant.objects) ? [] : [{ kind = keys(grant.thing)[0], folder = "", object = "" }],
            ) : {
            account = account
            role = (
              try(local.permissions.roles[grant.role].custom, false)
              ? "projects/${var.project}/roles/${local.role_prefix}${grant.role}"
              : grant.role
            )
            kind = on.kind
            name = (
              can(local.team_accounts[values(grant.thing)[0]])
              ? "${local.team_accounts[values(grant.thing)[0]]}-${team}"
              : values(grant.thing)[0]
            )
            folder = replace(on.folder, "$${team}", team)
            object = replace(on.object, "$${team}", team)
          }
        ]
      ]
    ]
  ])

  grants = {
    for kind in ["project", "bucket", "topic", "account", "function", "subscription", "secret", "folder", "object"] : kind => merge(
      {
        for grant in concat(local.each_grant, local.each_ci_grant) :
        trimsuffix("${grant.account}/${reverse(split("/", grant.role))[0]}/${grant.name}/${grant.folder}", "/") => grant
        if grant.kind == kind
      },
      {
        # A member of two teams has the roles of both, and one of those that all teams have.
        for key, same in {
          for grant in local.each_team_grant :
          trimsuffix("${grant.account}/${reverse(split("/", grant.role))[0]}/${grant.name}/${grant.folder}${grant.object}", "/") => grant...
          if grant.kind == kind
        } : key => same[0]
      }
    )
  }

  # Who reads the data bucket also reads those of `data_buckets`. A team's account is not among them: it reads its folder.
  data_grants = merge([
    for bucket in var.data_buckets : {
      for key, grant in local.grants.bucket : "${bucket}/${grant.account}" => { bucket = bucket, account = grant.account, role = grant.role }
      if grant.name == "data" && grant.role == "roles/storage.objectViewer"
    }
  ]...)

  # Managed folders of the deployment and its teams, by bucket and name.
  folders = merge({
    for grant in local.each_grant :
    "${grant.name}/${grant.folder}" => { bucket = grant.name, name = grant.folder }
    if grant.kind == "folder"
    }, flatten([
      for team in keys(var.teams) : [
        for grant in local.permissions.team_grants : {
          for folder in [for pattern in try(grant.folders, []) : replace(pattern, "$${team}", team)] :
          "${grant.thing.bucket}/${folder}" => { bucket = grant.thing.bucket, name = folder }
        }
      ]
  ])...)
}
