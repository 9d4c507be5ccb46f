"""How fixed points move with the make-up of a population: bifurcations, critical masses."""
