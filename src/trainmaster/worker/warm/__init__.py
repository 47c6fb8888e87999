"""Workers that start from a process which has imported torch already. Optional; see `server`."""
