"""What programs that extend weft build on: its programs as objects, and primitives of their own."""

from weft.extend import core as core
