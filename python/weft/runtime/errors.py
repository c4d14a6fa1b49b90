"""Errors of jaxlib that reach users as they are."""

from jaxlib import _jax

# What XLA and PJRT raise while a program is compiled, is run, or has run.
JaxRuntimeError = _jax.JaxRuntimeError
