"""The files that git ignores, by the .gitignore files of a folder."""
