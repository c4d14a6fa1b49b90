// The class Checked: a graph with its checks, and what each of them is about.
#pragma once

#include <nanobind/nanobind.h>

#include "references/core.h"

namespace weft::py {

Ref checked_object(const std::shared_ptr<const CheckedGraph>& checked);

void bind_checks(nanobind::module_& m);

}  // namespace weft::py
