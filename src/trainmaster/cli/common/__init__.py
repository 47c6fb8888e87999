"""Context, options, exit codes and helpers that commands share."""
