"""What all benchmarks share: the DynamoDB engine, the meter, result files, tables and pages."""
