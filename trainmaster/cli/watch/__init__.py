"""`trainmaster watch` and `web`: what happens, live, on the terminal and in the browser."""
