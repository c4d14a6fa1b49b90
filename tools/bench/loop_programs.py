"""Programs of many small operations: loops over small arrays, what people call small models.

`PROGRAMS` has for each name a builder, as in compile_programs.py: a function of a framework's top
package that returns a function and its arguments.
"""

import loops_control
import loops_science
import loops_statistics

PROGRAMS = loops_control.PROGRAMS | loops_science.PROGRAMS | loops_statistics.PROGRAMS
# Those for which the ratios of calls were asked for (see README.md).
ASKED = {
    "scalar_carries": 1 / 3,
    "scalar_carries_grad": 1 / 18,
    "kalman": 1 / 18,
    "kalman_grad": 1 / 18,
    "kalman_solve": 1 / 8,
    "sgd_scan": 1 / 3,
    "hmm_forward": 1 / 4,
    "rk45": 1.0,
    "cartpole_batch": 1 / 2.5,
}
