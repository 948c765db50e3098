"""What git ignores, by the .gitignore files of a folder."""
