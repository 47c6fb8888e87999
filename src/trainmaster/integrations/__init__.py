"""Plug-ins for orchestrators and training frameworks; each module imports the tool that it is for."""
