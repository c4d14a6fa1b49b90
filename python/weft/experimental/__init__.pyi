"""Written by tools/stubs; do not edit."""

from collections.abc import Callable
from typing import Any
from weft.experimental import buffer_callback as buffer_callback
from weft.experimental import checkify as checkify
from weft.experimental import compilation_cache as compilation_cache
from weft.experimental import compute_on as compute_on
from weft.experimental import custom_partitioning as custom_partitioning
from weft.experimental import jet as jet
from weft.experimental import layout as layout
from weft.experimental import mesh_utils as mesh_utils
from weft.experimental import multihost_utils as multihost_utils
from weft.experimental import ode as ode
from weft.experimental import overlap as overlap
from weft.experimental import pallas as pallas
from weft.experimental import pjit as pjit
from weft.experimental import random as random
from weft.experimental import rnn as rnn
from weft.experimental import roofline as roofline
from weft.experimental import scheduling_groups as scheduling_groups
from weft.experimental import serialize_executable as serialize_executable
from weft.experimental import shard_alike as shard_alike
from weft.experimental import shard_map as shard_map
from weft.experimental import sparse as sparse
from weft.experimental import topologies as topologies
from weft.experimental import xla_metadata as xla_metadata

def io_callback(callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Any = None, ordered: bool = False, **kwargs: Any) -> Any: ...
