"""What the flows need of the world, in the flows' own words; every error a port may raise is named."""
