"""Results beside the paper's: so far, the published numbers as data."""
