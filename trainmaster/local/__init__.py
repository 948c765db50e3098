"""The local stack: Google Cloud's services, spoken on the wire by this machine. Imports nothing of the product it serves."""
