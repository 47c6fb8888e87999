"""The store, the catalogue and the rendezvous in memory, for tests and replays."""
