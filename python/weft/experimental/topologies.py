"""The devices that programs are compiled for, and meshes of them."""

from weft._surface import open_to_users as _open_to_users, public as _public
from weft.experimental.mesh_utils import create_device_mesh as _create_device_mesh
from weft.runtime import devices as _devices, topologies as _topologies
from weft.runtime.devices import Device
from weft.sharding import Mesh as _Mesh

__all__ = [
    "Device",
    "TopologyDescription",
    "get_attached_topology",
    "get_topology_desc",
    "make_mesh",
]
__getattr__, __dir__ = _public(__name__, __all__)


class TopologyDescription:
    """A list of devices.

    Attributes: devices.
    """

    def __init__(self, devices):
        self.devices = devices

    def serialize(self):
        """The topology as bytes. Raises NotImplementedError for jaxlib below 0.12.

        Examples:
          >>> from weft.experimental import topologies
          >>> topology = topologies.get_attached_topology()
          >>> try:
          ...     print(type(topology.serialize()))
          ... except NotImplementedError:
          ...     print("<class 'bytes'>")
          <class 'bytes'>
        """
        return _topologies.to_bytes(self.devices)

    @classmethod
    def deserialize(cls, serialized):
        """The topology of bytes, of devices that only programs are compiled for.

        Raises NotImplementedError for jaxlib below 0.12.
        """
        return cls(_topologies.from_bytes(serialized))


def get_attached_topology(platform=None):
    """The devices that there are, of the default platform or of another.

    Raises RuntimeError for a platform that has none.

    Examples:
      >>> from weft.experimental import topologies
      >>> topologies.get_attached_topology("cpu").devices == weft.devices("cpu")
      True
    """
    return TopologyDescription(_devices.devices(platform))


def get_topology_desc(topology_name="", platform=None, **kwargs):
    """Devices of a platform that need not be there: none, so far.

    CPUs and GPUs have no topologies by name, and weft loads no library for TPUs: RuntimeError for
    platform None and "tpu", NotImplementedError for others.
    `topology_name` and `kwargs` are ignored.

    Examples:
      >>> from weft.experimental import topologies
      >>> try:
      ...     topologies.get_topology_desc(platform="cpu")
      ... except NotImplementedError:
      ...     print("use get_attached_topology")
      use get_attached_topology
    """
    if platform in (None, "tpu"):
        raise RuntimeError("get_topology_desc: topologies of TPUs need a library that is not there")
    raise NotImplementedError(
        f"get_topology_desc: platform {platform!r} has no topologies by name\n"
        "  Use get_attached_topology."
    )


def make_mesh(topo, mesh_shape, axis_names, *, contiguous_submeshes=False):
    """A mesh of all devices of a topology.

    Args:
      topo: a TopologyDescription.
      mesh_shape, axis_names: sizes and names of the axes, tuples of one length.
      contiguous_submeshes: ignored: devices of one process follow each other.

    Raises ValueError unless there are as many devices as positions.

    Examples:
      >>> from weft.experimental import topologies
      >>> topology = topologies.TopologyDescription(weft.devices()[:1])
      >>> topologies.make_mesh(topology, (1, 1), ("x", "y")).shape
      OrderedDict([('x', 1), ('y', 1)])
    """
    grid = _create_device_mesh(
        mesh_shape, list(topo.devices), contiguous_submeshes=contiguous_submeshes
    )
    return _Mesh(grid, axis_names)


_open_to_users(__name__)
