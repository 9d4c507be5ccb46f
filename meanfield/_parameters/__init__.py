"""Fixed points along the composition of a population: bifurcations, critical masses."""
