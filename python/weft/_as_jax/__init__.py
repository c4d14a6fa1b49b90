"""What modules of the name jax.* have under `weft.as_jax` besides the public names of weft."""
