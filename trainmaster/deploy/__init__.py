"""What exists in a project, who may do what there, and the commands that make it so."""
