"""The store, the catalogue, the rendezvous and permissions in memory, for tests and replays."""
