"""What the examples use of scikit-learn, which has no types."""
