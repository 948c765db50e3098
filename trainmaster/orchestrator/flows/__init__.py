"""The order of core calls and port calls: launch, settle, sweep."""
