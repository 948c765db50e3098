"""The best model under one name: comparison, promotion, rollback."""
