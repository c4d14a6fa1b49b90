"""What a trace says of the function that it is of."""
