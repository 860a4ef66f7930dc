"""The metrics of the bridge and of the controller of jobs: made from one table that declares them."""
