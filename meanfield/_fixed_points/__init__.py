"""Where the rate equation rests: closed classes, stationary distributions, roots, spectra."""
