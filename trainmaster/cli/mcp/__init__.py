"""`trainmaster mcp`: the verbs as tools of the Model Context Protocol; a change takes a plan's token and a budget."""
