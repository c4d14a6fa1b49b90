#!/bin/sh
# The car of gymnax's MountainCarContinuous sticks to the left wall; that of gymnasium rolls back.
#
# Guess: MountainCarContinuous-v0 of gymnax has the dynamics of gymnasium's environment of that name,
# as its MountainCar-v0 has: who runs into the wall at -1.2 stops there, with velocity 0.
# Behaviour: the velocity is set to 0 beyond the goal, not at the wall. At the wall the car keeps its
# velocity of -0.05, and gravity needs 22 steps to turn that around. gymnasium's car is at -0.66 by
# then, most of the way down to the valley. So an agent learns to keep off the wall, which costs nothing
# in gymnasium.
# Seen with gymnax 1.0.1, gymnasium 1.3.0 and jax 0.10.2 (Python 3.11). gymnax needs six, too, which
# its list of packages lacks. Output of this script, position and velocity without force, from -1.19
# with velocity -0.05:
#   MountainCar-v0 step 1: gymnax -1.200 -0.0000, gymnasium -1.200 0.0000
#   MountainCar-v0 step 2: gymnax -1.198 0.0022, gymnasium -1.198 0.0022
#   MountainCar-v0 step 22: gymnax -0.662 0.0471, gymnasium -0.662 0.0471
#   MountainCar-v0 step 23: gymnax -0.614 0.0481, gymnasium -0.614 0.0481
#   MountainCar-v0 steps of gymnax at the wall: 1
#   MountainCarContinuous-v0 step 1: gymnax -1.200 -0.0477, gymnasium -1.200 0.0000
#   MountainCarContinuous-v0 step 2: gymnax -1.200 -0.0455, gymnasium -1.198 0.0022
#   MountainCarContinuous-v0 step 22: gymnax -1.200 -0.0006, gymnasium -0.662 0.0471
#   MountainCarContinuous-v0 step 23: gymnax -1.198 0.0016, gymnasium -0.614 0.0481
#   MountainCarContinuous-v0 steps of gymnax at the wall: 22
set -e
dir=$(mktemp -d)
python3 -m venv "$dir/v"
"$dir/v/bin/pip" -q install gymnax==1.0.1 gymnasium==1.3.0 six jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$dir/v/bin/python" - <<'PY'
import dataclasses
import sys

import gymnasium
import gymnax
import numpy as np

import jax

key = jax.random.key(0)
failed = False
for name, action in (("MountainCar-v0", 1), ("MountainCarContinuous-v0", np.zeros(1, np.float32))):
    env, params = gymnax.make(name)
    state = env.reset(key, params)[1]
    state = dataclasses.replace(state, position=-1.19, velocity=-0.05, time=0)
    reference = gymnasium.make(name)
    reference.reset(seed=0)
    reference = reference.unwrapped
    reference.state = np.array([-1.19, -0.05])
    stays = 0
    for step in range(1, 24):
        seen, state = env.step_env(key, state, action, params)[:2]
        wanted = reference.step(action)[0]
        stays += bool(seen[0] == np.float32(-1.2))
        if step in (1, 2, 22, 23):
            print(f"{name} step {step}: gymnax {seen[0]:.3f} {seen[1]:.4f},", end=" ")
            print(f"gymnasium {wanted[0]:.3f} {wanted[1]:.4f}")
        if name == "MountainCar-v0":
            failed |= not np.allclose(seen, wanted, atol=1e-5)
    print(f"{name} steps of gymnax at the wall: {stays}")
    failed |= (stays > 15) != (name == "MountainCarContinuous-v0")
sys.exit(bool(failed))
PY
