"""The set-up of a checkout: its virtual environment, installed from requirements.lock by pip alone."""
