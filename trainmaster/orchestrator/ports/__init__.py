"""What the flows need of the world, in the flows' own words; every error a port may raise is named.

Any of them may also raise ServiceFailed: the service did not answer, and a later delivery may fare better.
"""
