"""Where arrays are, and how they lie there."""
