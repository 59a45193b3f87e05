"""Resources in the user's AWS account: `orch cluster init` makes a cluster's, `orch cluster destroy` removes them."""
