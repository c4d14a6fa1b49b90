// SPDX-License-Identifier: Apache-2.0
// Attributes: the static parameters of an op. A schema, declared once per op, names and types
// them; equality, hashing, printing, parsing and the view from Python are generic over it, so a
// cache key or a printed program cannot forget one.
#pragma once

#include <any>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "weft/api.h"
#include "weft/dtype.h"
#include "weft/sharding.h"
#include "weft/small_vector.h"
#include "weft/text.h"
#include "weft/type.h"

namespace weft {

class Graph;
using GraphRef = std::shared_ptr<const Graph>;

enum class AttrType : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,     // printed bare: name=f
  kDType,      // printed with its NumPy name: new_dtype=float32
  kInts,       // (0, 1)
  kBools,      // (False, True); held as Dims of 0 and 1
  kIntsList,   // ((0, 1, 0), (2, 2, 0))
  kIntsPairs,  // (([1], [0]), ([], [])): an even number of int lists, grouped in twos
  kTypes,      // (f32[3], i32[])
  kAxisNames,  // ('i', 'j'): mapped axes that the op refers to, or binds for its graphs
  kGraph,      // { lambda ; ... }
  kGraphs,     // ({ lambda ; ... }, { lambda ; ... })
  kMesh,       // mesh<'x': 8>
  kSharding,   // sharding<['x'], []; mesh<'x': 8>>
  kShardings,  // (sharding<...>, sharding<...>)
  kConstant,   // f32[2]:0x0000803F00000040, or an array that the embedding language holds (held.h)
  kObject,     // a value of the embedding language, compared by its own equality
};

// A value that only the embedding language understands (params of user-defined ops).
struct AttrObject {
  virtual ~AttrObject() = default;
  // Equal objects have equal hashes, of both kinds. hash() is for tables of this process and may
  // use an address; content_hash() is the same in every process: 0 where there is no content.
  virtual uint64_t hash() const = 0;
  virtual uint64_t content_hash() const { return 0; }
  virtual bool equals(const AttrObject& other) const = 0;
  virtual std::string text() const = 0;
  // Whether the parser reads text() back, in any process.
  virtual bool is_portable() const { return false; }
};
using ObjectRef = std::shared_ptr<const AttrObject>;

// monostate prints as None; an attribute without a name prints as its object's text alone. AttrType
// says how a Dims or a vector<Dims> is to be read.
using Attr =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, Dims, std::vector<Dims>,
                 std::vector<TypeRef>, GraphRef, std::vector<GraphRef>, ObjectRef,
                 std::vector<std::string>, MeshRef, ShardingRef, std::vector<ShardingRef>>;

struct AttrSpec {
  std::string name;
  AttrType type;
  enum Flags : uint8_t {
    kRequired = 0,
    kOptional = 1,         // defaults to None; printed as None
    kHideDefault = 2,      // not printed when equal to the default
    kFromResult = 4,       // shape or dtype of the result: not printed, read off the result's type
    kCosmetic = 8,         // ignored by equality and hashing (names)
    kOpen = 16,            // a graph that is shown to programs as a jaxpr, not as a closed one
    kBinds = 32,           // axis names that mean an axis of this op within its graphs
    kForDerivatives = 64,  // has a default, and matters only until derivatives have been taken
  };
  uint8_t flags = kRequired;
  Attr default_value = std::monostate{};
  bool has_default() const { return flags & (kOptional | kHideDefault | kCosmetic); }
};

class AttrRecord;
// Null stands for the record without attributes.
using AttrsRef = std::shared_ptr<const AttrRecord>;

// Kept sorted by name, the order of printing.
class WEFT_API AttrSchema {
 public:
  AttrSchema() = default;
  AttrSchema(std::initializer_list<AttrSpec> specs);
  explicit AttrSchema(std::vector<AttrSpec> specs);
  const std::vector<AttrSpec>& specs() const { return specs_; }
  size_t size() const { return specs_.size(); }
  int find(std::string_view name) const;  // -1 when absent

 private:
  friend class AttrRecord;
  // The record of defaults, of which element-wise ops need one each time. Made when it is first
  // asked for; it refers to its schema, so a copied schema makes its own.
  struct Defaults {
    std::atomic<AttrsRef> record;
    Defaults() = default;
    Defaults(const Defaults&) {}
    Defaults& operator=(const Defaults&) {
      record.store(nullptr);
      return *this;
    }
  };

  std::vector<AttrSpec> specs_;
  mutable Defaults defaults_;
};

using NamedAttr = std::pair<std::string_view, Attr>;

// An immutable record of attribute values in schema order, with its hash. Records are shared, not
// interned: a table of every slice index a process ever used would only grow. Comparison starts
// with pointers and hashes and so is as cheap.
class WEFT_API AttrRecord {
 public:
  // Fills in defaults; records of defaults alone are shared. Throws kType for an unknown or missing
  // name (the message lists what the op takes) or a value of the wrong type. `op` is only used in
  // messages.
  static AttrsRef make(std::string_view op, const AttrSchema& schema,
                       std::span<const NamedAttr> attrs);
  static AttrsRef make(std::string_view op, const AttrSchema& schema,
                       std::initializer_list<NamedAttr> attrs) {
    return make(op, schema, std::span<const NamedAttr>(attrs.begin(), attrs.size()));
  }

  const AttrSchema& schema() const { return *schema_; }
  const std::vector<Attr>& values() const { return values_; }
  // For tables of this process; and of contents alone, the same in every process.
  uint64_t hash() const { return hash_; }
  uint64_t content_hash() const { return content_hash_; }
  bool holds_graphs() const { return holds_graphs_; }
  // Whether it holds graphs or names of axes.
  bool may_name_axes() const { return may_name_axes_; }

  const Attr& at(std::string_view name) const;  // throws kInternal when absent
  bool is_none(std::string_view name) const {
    return std::holds_alternative<std::monostate>(at(name));
  }
  bool boolean(std::string_view name) const { return std::get<bool>(at(name)); }
  int64_t integer(std::string_view name) const { return std::get<int64_t>(at(name)); }
  double real(std::string_view name) const { return std::get<double>(at(name)); }
  const std::string& string(std::string_view name) const { return std::get<std::string>(at(name)); }
  DType dtype(std::string_view name) const { return std::get<DType>(at(name)); }
  const Dims& ints(std::string_view name) const { return std::get<Dims>(at(name)); }
  const std::vector<Dims>& ints_list(std::string_view name) const {
    return std::get<std::vector<Dims>>(at(name));
  }
  const std::vector<TypeRef>& types(std::string_view name) const {
    return std::get<std::vector<TypeRef>>(at(name));
  }
  const std::vector<std::string>& names(std::string_view name) const {
    return std::get<std::vector<std::string>>(at(name));
  }
  MeshRef mesh(std::string_view name) const { return std::get<MeshRef>(at(name)); }
  ShardingRef sharding(std::string_view name) const { return std::get<ShardingRef>(at(name)); }
  const std::vector<ShardingRef>& shardings(std::string_view name) const {
    return std::get<std::vector<ShardingRef>>(at(name));
  }
  const ObjectRef& object(std::string_view name) const { return std::get<ObjectRef>(at(name)); }
  const GraphRef& graph(std::string_view name) const { return std::get<GraphRef>(at(name)); }
  const std::vector<GraphRef>& graphs(std::string_view name) const {
    return std::get<std::vector<GraphRef>>(at(name));
  }

  // The same record with some values replaced.
  AttrsRef with(std::initializer_list<NamedAttr> changes) const;

  friend WEFT_API bool equal(const AttrsRef& a, const AttrsRef& b);

 private:
  void summarize();  // the members below

  const AttrSchema* schema_ = nullptr;
  std::vector<Attr> values_;
  uint64_t hash_ = 0;
  uint64_t content_hash_ = 0;
  bool holds_graphs_ = false;
  bool may_name_axes_ = false;
};

WEFT_API bool equal(const AttrsRef& a, const AttrsRef& b);
inline uint64_t hash(const AttrsRef& a) { return a ? a->hash() : 0; }

// Whether an op with these attributes owns graphs, and which.
WEFT_API void for_each_graph(const AttrsRef& attrs, const std::function<void(const GraphRef&)>& f);
// The record with every graph replaced by f(graph); the same pointer when nothing changed.
WEFT_API AttrsRef map_graphs(const AttrsRef& attrs,
                             const std::function<GraphRef(const GraphRef&)>& f);

// The record with defaults for what matters only until derivatives have been taken; the same
// pointer when nothing changed.
WEFT_API AttrsRef after_derivatives(const AttrsRef& attrs);

}  // namespace weft
