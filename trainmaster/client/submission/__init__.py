"""From request files and scripts on this machine to runs: edited, packed, checked and sent."""
