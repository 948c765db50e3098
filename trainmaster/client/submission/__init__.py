"""Submission: request files and scripts on this machine are edited, packed, checked and sent."""
