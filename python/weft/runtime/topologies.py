"""Lists of devices as bytes, which jaxlib 0.12 and later reads and writes."""

from jaxlib import _jax


def to_bytes(devices):
    """The topology of a list of devices of one client."""
    return _known("serialize")(_jax.get_topology_for_devices(devices))


def from_bytes(data):
    """The devices of a topology, which programs can be compiled for but not run on."""
    return _known("deserialize")(data)._make_compile_only_devices()


def _known(name):
    found = getattr(_jax.DeviceTopology, name, None)
    if found is None:
        raise NotImplementedError(
            f"TopologyDescription.{name}: expected jaxlib 0.12 or later; got an earlier one"
        )
    return found
