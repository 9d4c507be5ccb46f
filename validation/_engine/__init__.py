"""What all simulators share."""
