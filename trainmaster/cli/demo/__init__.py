"""The demos: a dropped request's whole way on this machine, live, and checked at its end."""
