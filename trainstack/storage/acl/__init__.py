"""Access control lists of buckets and objects, which count where uniform bucket-level access is off."""
