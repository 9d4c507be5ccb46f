"""What the inner rooms share: numbers, texts and JSON, checked."""
