"""The pages of docs/ as a site with search: `python -m tools.site`, which `make site` runs."""
