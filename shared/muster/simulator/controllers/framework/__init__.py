"""The machinery that all simulated controllers share: cache, informers, work queue and writes."""
