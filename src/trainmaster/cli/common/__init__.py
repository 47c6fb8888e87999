"""Options, context and exit codes that commands share."""
