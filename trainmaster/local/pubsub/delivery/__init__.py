"""How one subscription delivers: what waits, who holds it until when, and when it is given up."""
