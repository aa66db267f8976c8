"""Arenas and the ledger that counts every byte of them."""
