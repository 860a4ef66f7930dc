"""Networks that are kept between rounds, repaired to the new optimum, and certified."""
