"""A cluster that does not exist: five weeks of samples of made-up topics and groups, for pages that need a past."""
