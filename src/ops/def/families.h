// The families of built-in ops, a folder each; registry.cpp calls each once.
#pragma once

#include "weft/registry.h"

namespace weft::families {

void host(OpRegistry& r);
void control(OpRegistry& r);
void elementwise(OpRegistry& r);
void reduce(OpRegistry& r);
void products(OpRegistry& r);
void shape(OpRegistry& r);
void mesh(OpRegistry& r);

}  // namespace weft::families
