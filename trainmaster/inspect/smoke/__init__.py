"""The program, started as the service would start its chief and one worker, and judged by what really happens."""
