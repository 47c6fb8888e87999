"""Shared parts of the benchmarks: the DynamoDB engine, the meter, result files, tables and pages."""
