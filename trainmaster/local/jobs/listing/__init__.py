"""Which jobs a list call answers with: by label, by filter, page by page."""
