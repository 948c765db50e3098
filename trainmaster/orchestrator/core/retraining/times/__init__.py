"""When rules fire by the clock: cron expressions, their repairs, and their times in a zone."""
