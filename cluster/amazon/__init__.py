"""What a cluster on AWS needs in the user's account: made by `orch cluster init`, removed by `orch cluster destroy`."""
