"""The ledger of units, and the choice of a pool."""
