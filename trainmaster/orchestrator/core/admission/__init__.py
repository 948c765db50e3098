"""When a run may go, where, and at what cost: pure decisions, asked by the flow before it submits."""
