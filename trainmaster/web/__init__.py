"""The console: pages in the browser about the runs of one context, and the same data as JSON."""
