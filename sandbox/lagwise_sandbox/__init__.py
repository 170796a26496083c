"""Real brokers and real workloads, for the demo, the tests and the benchmarks."""
