"""What all tests share. Its place here puts `tests/` on the import path: `from builders import a_job`."""
