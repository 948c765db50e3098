"""What is said of a script: before it is sent, and when."""
