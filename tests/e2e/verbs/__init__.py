"""Verbs of the command, each against one running stack that their tests share."""
