"""Parts that all simulators share."""
