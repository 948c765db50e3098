"""New data trains the next champion: the demo with two bursts of files, one good and one bad."""
