"""The types of values, as users see them."""
