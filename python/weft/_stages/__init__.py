"""The stages of a function on its way to the device: traced, lowered, compiled."""
