// Type-checks every rule of every element-wise op, on all dtypes that the op takes and on operands
// that are arrays or scalars: tangents have the type of the result, cotangents that of the operand,
// mapped results have one axis more. The values are tested from Python.
#include <algorithm>
#include <map>
#include <memory>

#include "check.h"
#include "rules.h"
#include "weft/weft.h"

namespace weft {

namespace {

struct Case {
  const OpDef& op;
  AttrsRef attrs;
  TypeRefs in_types;
  TypeRefs out_types;

  std::string text() const {
    Text out;
    out << op.name;
    for (TypeRef t : in_types) out << ' ' << t;
    return out.take();
  }
  RuleCtx rule(Builder& b, std::span<const Value> operands) const {
    return {b, op, attrs, operands, in_types, out_types, &transforms()};
  }
};

// A choice of the attributes that an op cannot do without.
std::vector<AttrsRef> attrs_of(const OpDef& op) {
  static const std::map<std::string, std::vector<std::vector<NamedAttr>>> kChoices = {
      {"round", {{{"rounding_method", int64_t{0}}}, {{"rounding_method", int64_t{1}}}}},
      {"integer_pow", {{{"y", int64_t{0}}}, {{"y", int64_t{1}}}, {{"y", int64_t{-3}}}}},
      {"name", {{{"name", std::string("n")}}}},
      {"device_put", {{{"memory", std::string("pinned_host")}, {"source", std::string("device")}}}},
      {"pvary", {{{"axes", std::vector<std::string>{"i"}}}}},
      {"vary_cast", {{{"axes", std::vector<std::string>{"i"}}, {"unreduced", true}}}},
      {"sharding_constraint", {{{"sharding", make_sharding({.mesh = make_mesh({{"x", 2}})})}}}},
      {"reduce_precision", {{{"exponent_bits", int64_t{5}}, {"mantissa_bits", int64_t{7}}}}},
      {"convert_element_type",
       {{{"new_dtype", DType::kF32}},
        {{"new_dtype", DType::kBF16}},
        {{"new_dtype", DType::kC64}},
        {{"new_dtype", DType::kI32}}}},
      {"bitcast_convert_type", {{{"new_dtype", DType::kF32}}, {{"new_dtype", DType::kI64}}}},
      {"derivative",
       {{{"function", std::string("regularized_incomplete_beta")}, {"by", Dims{0, 2}}}}},
  };
  auto choices = kChoices.find(op.name);
  std::vector<AttrsRef> all;
  if (choices == kChoices.end()) {
    all.push_back(op.attrs.size() == 0 ? nullptr : AttrRecord::make(op.name, op.attrs, {}));
  } else {
    for (const auto& attrs : choices->second)
      all.push_back(AttrRecord::make(op.name, op.attrs, std::span<const NamedAttr>(attrs)));
  }
  return all;
}

// Every case that inference accepts: operand 0 of one dtype, the others of another; each operand an
// array or a scalar.
std::vector<Case> cases_of(const OpDef& op) {
  size_t n = op.num_operands < 0 ? 3 : static_cast<size_t>(op.num_operands);
  const Dims shapes[] = {{}, {2, 3}};
  std::vector<Case> cases;
  for (const AttrsRef& attrs : attrs_of(op)) {
    for (int first = 0; first < kNumDTypes; ++first) {
      for (int rest = 0; rest < (n == 1 ? 1 : kNumDTypes); ++rest) {
        for (unsigned arrays = 0; arrays < (1u << n); ++arrays) {
          TypeRefs types;
          for (size_t i = 0; i < n; ++i)
            types.push_back(
                make_type(static_cast<DType>(i == 0 ? first : rest), shapes[arrays >> i & 1]));
          try {
            TypeRefs results = infer_types(op, types, attrs);
            cases.push_back({op, attrs, types, results});
          } catch (const Error& error) {
            CHECK(std::string_view(error.what()).starts_with(cat("[", op.name, "] ")));
          }
        }
      }
    }
  }
  return cases;
}

template <typename F>
void for_each_case(F f) {
  for (const OpDef* op : registry().all()) {
    if (!op->elementwise && op->name != "bitcast_convert_type") continue;
    for (const Case& c : cases_of(*op)) {
      try {
        f(c);
      } catch (const std::exception& error) { CHECK_EQ(c.text(), error.what()); }
    }
  }
}

std::vector<Value> inputs(GraphBuilder& b, std::span<const TypeRef> types) {
  std::vector<Value> values;
  for (TypeRef t : types) values.push_back(b.input(t));
  return values;
}

Value tangent_of(const Case& c, GraphBuilder& b, unsigned active) {
  std::vector<Value> operands = inputs(b, c.in_types);
  std::vector<Value> tangents(operands.size());
  for (size_t i = 0; i < tangents.size(); ++i)
    if (active >> i & 1) tangents[i] = b.input(c.in_types[i]);
  Values results = b.add(c.op, operands, c.attrs);
  switch (c.op.jvp_kind) {
    case JvpKind::kNone:
    case JvpKind::kZero:
      return {};
    case JvpKind::kLinear: {
      std::vector<Value> xs = tangents;
      for (size_t i = 0; i < xs.size(); ++i)
        if (!xs[i]) xs[i] = zeros(b, c.in_types[i]).value;
      return b.add(c.op, xs, c.attrs)[0];
    }
    case JvpKind::kArgs: {
      Val sum;
      for (size_t i = 0; i < tangents.size(); ++i) {
        if (!tangents[i]) continue;
        JvpArgCtx ctx{c.rule(b, operands), i, {&b, tangents[i]}, {&b, results[0]}};
        Val t = c.op.jvp_args.at(i)(ctx);
        CHECK_EQ(t.type(), c.out_types[0]);
        sum = sum ? sum + t : t;
      }
      return sum.value;
    }
    case JvpKind::kCustom: {
      JvpCtx ctx{c.rule(b, operands), tangents, results};
      return c.op.jvp(ctx)[0].value;
    }
  }
  return {};
}

// Bits of the operands that can carry a tangent.
unsigned inexact_operands(const Case& c) {
  unsigned mask = 0;
  for (size_t i = 0; i < c.in_types.size(); ++i)
    if (is_inexact(c.in_types[i]->dtype())) mask |= 1u << i;
  return mask;
}

// Whether the op is linear in all of these operands at once.
bool is_linear_in(const Case& c, unsigned operands) {
  if (c.op.name == "mul") return operands != 3;
  if (c.op.name == "div") return operands == 1;
  return true;
}

TypeRef with_mapped_axis(TypeRef type, int dim, int64_t size) {
  if (dim == kNotBatched) return type;
  Dims shape = type->shape();
  shape.insert(static_cast<size_t>(dim), size);
  return with_shape(type, shape);
}

TEST(elementwise_ops_have_all_rules) {
  for (const OpDef* op : registry().all()) {
    if (!op->elementwise) continue;
    for (const std::string& slot : op->missing_rules()) CHECK_EQ(op->name, slot);
    CHECK(!cases_of(*op).empty());
  }
}

TEST(tangents_have_the_type_of_the_result) {
  for_each_case([](const Case& c) {
    if (!is_inexact(c.out_types[0]->dtype())) return;
    unsigned inexact = inexact_operands(c);
    for (unsigned active = 1; active <= inexact; ++active) {
      if (active & ~inexact) continue;
      GraphBuilder b;
      try {
        Value t = tangent_of(c, b, active);
        if (t && b.type(t) != c.out_types[0]) CHECK_EQ(c.text(), cat("tangent ", b.type(t)));
      } catch (const Error& error) {
        // An argument without a derivative.
        if (error.kind() != ErrorKind::kNotImplemented) throw;
      }
    }
  });
}

TEST(integer_results_have_no_tangent) {
  for_each_case([](const Case& c) {
    bool zero = c.op.jvp_kind == JvpKind::kZero;
    if (is_inexact(c.out_types[0]->dtype()) || zero || inexact_operands(c) == 0) return;
    GraphBuilder b;
    CHECK(!tangent_of(c, b, inexact_operands(c)));
  });
}

TEST(cotangents_have_the_type_of_the_operand) {
  for_each_case([](const Case& c) {
    if (!c.op.transpose || !is_inexact(c.out_types[0]->dtype())) return;
    unsigned inexact = inexact_operands(c);
    size_t n = c.in_types.size();
    for (unsigned linear = 1; linear <= inexact; ++linear) {
      if ((linear & ~inexact) || !is_linear_in(c, linear)) continue;
      GraphBuilder b;
      auto mask = std::make_unique<bool[]>(n);
      std::vector<Value> operands(n), sums(n);
      for (size_t i = 0; i < n; ++i) {
        mask[i] = linear >> i & 1;
        if (!mask[i]) operands[i] = b.input(c.in_types[i]);
      }
      std::vector<Value> cotangents = inputs(b, c.out_types);
      auto keep = test::keep_in(b, c.in_types, sums);
      TransposeCtx ctx{c.rule(b, operands), {mask.get(), n}, cotangents, sums, keep};
      c.op.transpose(ctx);
      c.op.transpose(ctx);  // now there are cotangents to add to
      for (size_t i = 0; i < n; ++i) {
        CHECK_EQ(static_cast<bool>(sums[i]), mask[i]);
        if (sums[i]) CHECK_EQ(b.type(sums[i]), c.in_types[i]);
      }
    }
  });
}

TEST(mapped_results_have_one_axis_more) {
  constexpr int64_t kSize = 5;
  for_each_case([](const Case& c) {
    size_t n = c.in_types.size();
    std::vector<int> dims(n, kNotBatched);
    auto next = [&] {  // counts through the axes of each operand
      for (size_t i = 0; i < n; ++i) {
        if (++dims[i] <= c.in_types[i]->rank()) return true;
        dims[i] = kNotBatched;
      }
      return false;
    };
    while (next()) {
      GraphBuilder b;
      std::vector<TypeRef> types;
      for (size_t i = 0; i < n; ++i)
        types.push_back(with_mapped_axis(c.in_types[i], dims[i], kSize));
      std::vector<Value> operands = inputs(b, types);
      BatchCtx ctx{c.rule(b, operands), kSize, dims, {}, {}};
      c.op.batch(ctx);
      CHECK_EQ(ctx.out.size(), size_t{1});
      CHECK_EQ(ctx.out[0].type(), with_mapped_axis(c.out_types[0], ctx.out_dims[0], kSize));
    }
  });
}

TEST(elementwise_ops_decompose_into_their_type) {
  for_each_case([](const Case& c) {
    if (!c.op.decompose) return;
    GraphBuilder b;
    std::vector<Value> operands = inputs(b, c.in_types);
    RuleCtx ctx = c.rule(b, operands);
    CHECK_EQ(c.op.decompose(ctx)[0].type(), c.out_types[0]);
  });
}

TEST(elementwise_ops_print_and_parse) {
  for_each_case([](const Case& c) {
    GraphBuilder b;
    GraphRef graph = b.finish(b.add(c.op, inputs(b, c.in_types), c.attrs));
    CHECK(equal(*parse(print(*graph)), *graph));
  });
}

TEST(folded_literals_have_the_dtype_of_the_result) {
  for_each_case([](const Case& c) {
    if (!c.op.fold || c.out_types[0]->rank() != 0) return;
    for (double value : {0.0, 1.0, -3.0, 2.5}) {
      std::vector<Literal> xs;
      for (TypeRef t : c.in_types) xs.push_back(make_literal(t->dtype(), value));
      std::optional<Literal> folded = c.op.fold({xs, c.attrs.get(), c.out_types[0]->dtype()});
      if (folded) CHECK_EQ(folded->dtype, c.out_types[0]->dtype());
    }
  });
}

TEST(unknown_op_names_get_suggestions) {
  CHECK_THROWS(kValue, "did you mean cosh", registry().get("cossh"));
  CHECK_THROWS(kValue, "got xyzzyxyzzy", registry().get("xyzzyxyzzy"));
}

}  // namespace

}  // namespace weft
