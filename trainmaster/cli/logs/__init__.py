"""`trainmaster logs`: a coloured lane for each replica, and its progress as a bar."""
