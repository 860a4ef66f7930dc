"""`poseidon demo`: the whole path on an embedded cluster, and proof that it worked."""
