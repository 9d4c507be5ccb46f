"""Where the rate equation rests: closed classes, stationary laws, roots, spectra."""
