"""Who is told of changes to objects, and in which words."""
