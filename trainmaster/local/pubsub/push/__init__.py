"""Push subscriptions: messages posted to an endpoint."""
