"""The end of a job becomes the end of its run: its model, the reason of its failure, and its champion."""
