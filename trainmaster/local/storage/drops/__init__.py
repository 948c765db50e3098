"""Files that something else drops into a bucket's folder, changes there or removes."""
