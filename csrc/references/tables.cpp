// How large the tables of the process are, and may be.

#include "references/tables.h"

#include "references/bound_text.h"
#include "references/core.h"
#include "references/lru_table.h"

namespace nb = nanobind;

namespace weft::py {

void bind_tables(nb::module_& m) {
  // {name: (size, limit)} of the tables that were used so far.
  m.def("tables", [] {
    nb::dict d;
    for (auto [table_name, table] : process_tables())
      d[table_name] = nb::make_tuple(table->size(), table->limit());
    return d;
  });
  m.def("limit_table", [](const std::string& table_name, size_t limit) {
    for (auto [known, table] : process_tables())
      if (table_name == known) return table->set_limit(limit);
    raise_error("AttributeValueError", "limit_table expected a table that was used; got '",
                table_name, "'");
  });
}

}  // namespace weft::py
