"""The project of a script: its root, the packages that it needs, and what it imports; and other tools' files for one."""
