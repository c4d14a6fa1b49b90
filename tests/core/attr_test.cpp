// Attribute records: checks against the schema, defaults, equality, hashing.
#include "check.h"
#include "test_ops.h"

using namespace weft;
using namespace weft::test;

namespace {

struct Box : AttrObject {
  explicit Box(int x) : x(x) {}
  uint64_t hash() const override { return static_cast<uint64_t>(x); }
  bool equals(const AttrObject& other) const override {
    return x == dynamic_cast<const Box&>(other).x;
  }
  std::string text() const override { return cat("<box ", x, ">"); }
  int x;
};

const AttrSchema kSchema{{"b", AttrType::kBool},
                         {"x", AttrType::kFloat, AttrSpec::kHideDefault, 1.0},
                         {"a", AttrType::kInts, AttrSpec::kOptional},
                         {"name", AttrType::kString, AttrSpec::kCosmetic, std::string("f")},
                         {"flags", AttrType::kBools, AttrSpec::kOptional},
                         {"pairs", AttrType::kIntsPairs, AttrSpec::kOptional},
                         {"object", AttrType::kObject, AttrSpec::kOptional},
                         {"graph", AttrType::kGraph, AttrSpec::kOptional}};

AttrsRef make(std::initializer_list<NamedAttr> attrs) {
  return AttrRecord::make("op", kSchema, attrs);
}

}  // namespace

TEST(schema_is_sorted) {
  CHECK_EQ(kSchema.specs()[0].name, "a");
  CHECK_EQ(kSchema.specs()[1].name, "b");
  CHECK_EQ(kSchema.find("b"), 1);
  CHECK_EQ(kSchema.find("zz"), -1);
  CHECK_THROWS(kValue, "twice", (AttrSchema{{"a", AttrType::kInt}, {"a", AttrType::kInt}}));
}

TEST(defaults_and_access) {
  AttrsRef attrs = make({{"b", true}});
  CHECK(attrs->boolean("b"));
  CHECK_EQ(attrs->real("x"), 1.0);
  CHECK(attrs->is_none("a"));
  CHECK_EQ(attrs->string("name"), "f");
  CHECK_THROWS(kInternal, "no attribute c", attrs->at("c"));
  CHECK(AttrRecord::make("neg", AttrSchema(), {}) == nullptr);
}

TEST(wrong_attributes) {
  CHECK_THROWS(kType, "[op] expected a (optional), b, flags (optional)", make({{"c", true}}));
  CHECK_THROWS(kType, "got an attribute named c", make({{"c", true}}));
  CHECK_THROWS(kType, "got no b", make({}));
  CHECK_THROWS(kType, "got it twice", make({{"b", true}, {"b", true}}));
  CHECK_THROWS(kType, "expected a bool for attribute b; got an integer", make({{"b", int64_t{1}}}));
  CHECK_THROWS(kType, "got None", make({{"b", std::monostate{}}}));
  CHECK_THROWS(kType, "expected a tuple of integers for attribute a or None; got a float",
               make({{"b", true}, {"a", 1.0}}));
  CHECK_THROWS(kType, "a tuple of bools", make({{"b", true}, {"flags", Dims{2}}}));
  CHECK_THROWS(kType, "pairs", make({{"b", true}, {"pairs", std::vector<Dims>(3)}}));
  CHECK_THROWS(kType, "an object", make({{"b", true}, {"object", ObjectRef()}}));
  CHECK_THROWS(kType, "a graph", make({{"b", true}, {"graph", GraphRef()}}));
  CHECK_THROWS(kType, "no attributes", AttrRecord::make("neg", AttrSchema(), {{"x", true}}));
}

TEST(integers_become_floats) {
  AttrsRef attrs = make({{"b", true}, {"x", int64_t{1}}});
  CHECK_EQ(attrs->real("x"), 1.0);
  CHECK(equal(attrs, make({{"b", true}})));
}

TEST(equality_and_hash) {
  AttrsRef base = make({{"b", true}, {"a", Dims{1, 2}}});
  CHECK(equal(base, make({{"a", Dims{1, 2}}, {"b", true}})));
  CHECK_EQ(hash(base), hash(make({{"a", Dims{1, 2}}, {"b", true}})));
  CHECK(!equal(base, make({{"b", true}, {"a", Dims{2, 1}}})));
  CHECK(!equal(base, make({{"b", false}, {"a", Dims{1, 2}}})));
  CHECK(!equal(base, make({{"b", true}})));
  CHECK(!equal(base, nullptr));
  CHECK(equal(AttrsRef(), AttrsRef()));
  double nan = 0.0 / 0.0;
  CHECK(equal(make({{"b", true}, {"x", nan}}), make({{"b", true}, {"x", nan}})));
  CHECK(!equal(make({{"b", true}, {"x", 0.0}}), make({{"b", true}, {"x", -0.0}})));
}

TEST(cosmetic_attributes_do_not_count) {
  AttrsRef f = make({{"b", true}}), g = make({{"b", true}, {"name", std::string("g")}});
  CHECK(equal(f, g));
  CHECK_EQ(hash(f), hash(g));
}

TEST(objects_compare_by_their_own_equality) {
  auto box = [](int x) -> ObjectRef { return std::make_shared<Box>(x); };
  CHECK(equal(make({{"b", true}, {"object", box(1)}}), make({{"b", true}, {"object", box(1)}})));
  CHECK(!equal(make({{"b", true}, {"object", box(1)}}), make({{"b", true}, {"object", box(2)}})));
}

TEST(changed_records) {
  AttrsRef base = make({{"b", true}});
  AttrsRef changed = base->with({{"b", false}, {"x", int64_t{2}}});
  CHECK(!changed->boolean("b"));
  CHECK_EQ(changed->real("x"), 2.0);
  CHECK(base->boolean("b"));
  CHECK(equal(changed, make({{"b", false}, {"x", 2.0}})));
  CHECK_THROWS(kType, "got an attribute named c", base->with({{"c", true}}));
  CHECK_THROWS(kType, "expected a bool", base->with({{"b", 1.0}}));
}

TEST(graphs_in_attributes) {
  GraphRef f = parse_test("{ lambda ; a:f32[]. let b:f32[] = neg a in (b,) }");
  GraphRef same = parse_test("{ lambda ; x:f32[]. let y:f32[] = neg x in (y,) }");
  GraphRef other = parse_test("{ lambda ; a:f32[]. let  in (a,) }");
  AttrsRef attrs = AttrRecord::make("cond", kCond.attrs, {{"branches", std::vector{f, other}}});
  CHECK(equal(attrs, attrs->with({{"branches", std::vector{same, other}}})));
  CHECK(!equal(attrs, attrs->with({{"branches", std::vector{other, f}}})));
  int count = 0;
  for_each_graph(attrs, [&](const GraphRef& g) { count += g == f || g == other; });
  CHECK_EQ(count, 2);
  CHECK(map_graphs(attrs, [](const GraphRef& g) { return g; }) == attrs);
  AttrsRef mapped = map_graphs(attrs, [&](const GraphRef& g) { return g == f ? other : g; });
  CHECK(mapped->graphs("branches")[0] == other);
  CHECK(map_graphs(nullptr, [](const GraphRef& g) { return g; }) == nullptr);
}
