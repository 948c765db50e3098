"""`trainmaster ls`, `status`, `why`, `queue`, `cancel` and `download`: runs, why each is as it is, and what it left."""
