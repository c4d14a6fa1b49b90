// Functions of handles, by which `weft._dims` makes its objects.

#include "graphs/dims.h"

#include "graphs/graph_object.h"
#include "references/bound_text.h"

namespace nb = nanobind;

namespace weft::py {
namespace {

nb::object size_or_none(const std::optional<int64_t>& x) {
  return x ? nb::cast(*x) : nb::object(nb::none());
}

DimValues values_of(const nb::dict& sizes) {
  DimValues values;
  for (auto [name, size] : sizes) values[nb::cast<std::string>(name)] = to_int(size.ptr());
  return values;
}

}  // namespace

void bind_dims(nb::module_& m) {
  m.def("dim_scope", [](const nb::list& constraints) {
    std::vector<std::string> texts;
    for (nb::handle c : constraints) texts.push_back(nb::cast<std::string>(c));
    return make_dim_scope(texts);
  });
  m.def("dim_scope_of", [](int64_t d) { return scope_of(d); });
  m.def("dim_parse",
        [](const std::string& text, DimScope scope) { return parse_dim(text, scope); });
  m.def("dim_is_symbolic", [](int64_t d) { return is_symbolic(d); });
  m.def("dim_text", [](int64_t d) { return dim_text(d); });
  m.def("dim_add", &dim_add);
  m.def("dim_sub", &dim_sub);
  m.def("dim_mul", &dim_mul);
  m.def("dim_floordiv", &dim_floordiv);
  m.def("dim_mod", &dim_mod);
  m.def("dim_max", &dim_max);
  m.def("dim_min", &dim_min);
  m.def("dim_at_least", &dim_at_least);
  m.def("dim_bounds", [](int64_t d) {
    DimBounds bounds = dim_bounds(d);
    return nb::make_tuple(size_or_none(bounds.lower), size_or_none(bounds.upper));
  });
  m.def("dim_variables", [](int64_t d) {
    nb::list names;
    for (const std::string& name : dim_variables(d)) names.append(name.c_str());
    return names;
  });
  m.def("dim_evaluate",
        [](int64_t d, const nb::dict& sizes) { return dim_evaluate(d, values_of(sizes)); });
  m.def("refine", [](const GraphObject& g, const nb::dict& sizes) {
    return GraphObject{refine(g.graph, values_of(sizes))};
  });
}

}  // namespace weft::py
