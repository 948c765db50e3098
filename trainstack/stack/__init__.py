"""One command that runs every service, function and event of a project on this machine."""
