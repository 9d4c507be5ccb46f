"""What the inner rooms share: texts, JSON and folders."""
