// What a whole text has besides its functions: aliases of attributes and types, blobs of resources,
// and the values of attributes, which are read where an op asks for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "read/cursor.h"
#include "support/index_table.h"
#include "weft/location.h"
#include "weft/op.h"
#include "weft/small_vector.h"
#include "weft/type.h"

namespace weft::reader {

// An attribute by its name, with the text of its value.
struct Named {
  std::string_view name, value;
};
using NamedList = SmallVector<Named, 8>;

// Tokens order effects. Graphs order them without.
inline constexpr TypeRef kToken = nullptr;

class Document {
 public:
  explicit Document(std::string_view text, std::string_view file);

  const Source& source() const { return source_; }
  Cursor cursor(std::string_view piece) const { return {source_, piece}; }

  // Reads tensor<4x3xf32>, !stablehlo.token (kToken) or an alias of these.
  TypeRef type(Cursor& in);
  // Reads "(t, t)", "t, t" or "t".
  TypeRefs types(Cursor& in);
  // Reads "loc(...)" if it comes next; the place in the text where it says nothing.
  Loc location(Cursor& in, const char* op);

  // A value with an alias replaced by what it stands for.
  std::string_view resolved(std::string_view value) const;
  // The value of an attribute, of the form that is asked for. All throw kParse with its place.
  bool boolean(std::string_view value) const;
  int64_t integer(std::string_view value) const;
  Dims ints(std::string_view value) const;                 // [1, 2], array<i64: 1, 2>, dense<..>
  std::vector<Dims> rows(std::string_view value) const;    // [[0, 1], [0, 0]], dense<..>
  std::string_view keyword(std::string_view value) const;  // "LT" of #stablehlo<... LT>
  std::string string(std::string_view value) const;
  std::string_view symbol(std::string_view value) const;             // "f" of @f
  std::vector<std::string_view> list(std::string_view value) const;  // [a, b]
  // k = v, k = v of {...}, <...>, #stablehlo.gather<...>
  NamedList fields(std::string_view value) const;
  // The digits of a resource, as they stand: 0x04000000...
  std::string_view resource(std::string_view name, const char* at) const;

 private:
  using Table = std::unordered_map<std::string_view, std::string_view>;

  void find_aliases();
  void find_resources();
  TypeRef tensor(std::string_view text) const;
  DType element_type(Cursor& in) const;
  Loc find_location(std::string_view text, int depth);
  // The inside of the outermost brackets of a value.
  std::string_view inside(std::string_view value) const;
  void append_ints(Cursor& in, Dims& to) const;

  Source source_;
  std::string file_;
  Table aliases_, resources_;
  IndexTable type_index_;
  std::vector<std::pair<std::string_view, TypeRef>> types_;
  std::unordered_map<std::string_view, Loc> locations_;
};

inline constexpr int kMaxAliasDepth = 32;
inline constexpr size_t kMaxRank = 128;

}  // namespace weft::reader
