"""Smoke runs: the program is started as the service would start its chief and one worker, and judged by its run."""
