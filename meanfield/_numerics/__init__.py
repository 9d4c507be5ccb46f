"""Methods that know nothing of agents: roots, interpolants, eigenvalues, steps in time, compiled loops."""
