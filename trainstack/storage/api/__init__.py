"""The JSON API's methods, one module per resource."""
