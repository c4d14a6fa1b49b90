// dot_general: products of two arrays summed over contracting axes, with batch axes. Result axes
// are the batch axes, then the free axes of lhs, then those of rhs, each in order.
#include "ops/def/axes.h"
#include "ops/def/hlo_text.h"
#include "ops/def/place.h"
#include "ops/def/presets.h"
#include "ops/products/family.h"
#include "ops/products/products.h"
#include "weft/kernels.h"

namespace weft {
namespace {

DotDims dot_dims(const AttrRecord& attrs) {
  const std::vector<Dims>& d = attrs.ints_list("dimension_numbers");
  return {.lhs_contract = d[0], .rhs_contract = d[1], .lhs_batch = d[2], .rhs_batch = d[3]};
}

Dims joined(Dims xs, const Dims& ys) {
  for (int64_t y : ys) xs.push_back(y);
  return xs;
}

// Axes that are neither contracted nor batch axes.
Dims free_axes(TypeRef type, const Dims& contract, const Dims& batch) {
  return other_axes(type->rank(), joined(contract, batch));
}

// Whether the contracting axes of a side come after its free ones, so that sums go along rows.
bool is_in_rows(TypeRef type, const Dims& contract, const Dims& batch) {
  const Dims& shape = type->shape();
  Dims free = free_axes(type, contract, batch);
  auto moves = [&](int64_t axis) { return shape[static_cast<size_t>(axis)] > 1; };
  return std::none_of(contract.begin(), contract.end(), [&](int64_t summed) {
    return moves(summed) && std::any_of(free.begin(), free.end(),
                                        [&](int64_t kept) { return summed < kept && moves(kept); });
  });
}

void check_dot_axes(const InferCtx& c, const DotDims& d) {
  TypeRef lhs = c.in(0), rhs = c.in(1);
  auto same_sizes = [&](std::string_view what, const Dims& xs, const Dims& ys, int c_count,
                        int c_sizes) {
    if (xs.size() != ys.size())
      c.fail(ErrorKind::kValue, "expected as many ", what, " axes of lhs as of rhs (dot_general C",
             c_count, "); got ", xs, " and ", ys, " (", operand_types(c), ")");
    if (pick(lhs->shape(), xs) != pick(rhs->shape(), ys))
      c.fail(ErrorKind::kShape, "expected ", what, " axes of equal sizes (dot_general C", c_sizes,
             "); got axes ", xs, " of lhs with sizes ", pick(lhs->shape(), xs), " and axes ", ys,
             " of rhs with sizes ", pick(rhs->shape(), ys), " (", operand_types(c), ")");
  };
  check_axes(c, "lhs dimension_numbers", joined(d.lhs_contract, d.lhs_batch), lhs);
  check_axes(c, "rhs dimension_numbers", joined(d.rhs_contract, d.rhs_batch), rhs);
  same_sizes("batch", d.lhs_batch, d.rhs_batch, 1, 9);
  same_sizes("contracting", d.lhs_contract, d.rhs_contract, 2, 10);
}

TypeRefs infer_dot_general(const InferCtx& c) {
  TypeRef lhs = c.in(0), rhs = c.in(1);
  size_t lists = c.attr().ints_list("dimension_numbers").size();
  if (lists != 4)
    c.fail(ErrorKind::kValue, "expected dimension_numbers of 4 lists: contracting axes of lhs and ",
           "rhs, batch axes of lhs and rhs; got ", lists);
  DType dtype = infer_product_dtype(c, /*has_algorithms=*/true);
  DotDims d = dot_dims(c.attr());
  check_dot_axes(c, d);
  Dims shape = pick(lhs->shape(), d.lhs_batch);
  shape = joined(shape, pick(lhs->shape(), free_axes(lhs, d.lhs_contract, d.lhs_batch)));
  shape = joined(shape, pick(rhs->shape(), free_axes(rhs, d.rhs_contract, d.rhs_batch)));
  return {make_type(dtype, shape)};
}

// The cotangent of one side: the result's cotangent contracted with the other side over that side's
// free axes. Its axes come out as batch axes, free axes, then contracted axes in the order in which
// the other side has them.
void transpose_side(TransposeCtx& c, size_t side) {
  struct Side {
    Dims contract, batch, free;
  };
  auto side_of = [&](size_t i) {
    const std::vector<Dims>& d = c.attr().ints_list("dimension_numbers");
    return Side{d[i], d[2 + i], free_axes(c.in_types[i], d[i], d[2 + i])};
  };
  Side mine = side_of(side), other = side_of(1 - side);
  size_t num_batch = mine.batch.size();
  size_t begin = num_batch + (side == 0 ? mine.free.size() : 0);
  Dims summed;
  for (size_t i = 0; i < other.free.size(); ++i) summed.push_back(static_cast<int64_t>(begin + i));
  Val r = dot_general(c.ct(), c.x(1 - side),
                      {.lhs_contract = summed,
                       .rhs_contract = other.free,
                       .lhs_batch = count_up(static_cast<int>(num_batch)),
                       .rhs_batch = other.batch},
                      c.out_types[0]->dtype(), c.attr().at("precision"));
  Dims order = count_up(static_cast<int>(other.contract.size()));
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return other.contract[static_cast<size_t>(i)] < other.contract[static_cast<size_t>(j)];
  });
  Dims made = joined(joined(mine.batch, mine.free), pick(mine.contract, order));
  if (!counts_up(made)) r = transpose(r, inverse(made));
  c.add(side, convert(r, c.in_types[side]->dtype()));
}

// Two mapped axes become a leading batch axis; one becomes a free axis. Nothing is transposed.
void batch_dot_general(BatchCtx& c) {
  DotDims d = dot_dims(c.attr());
  int num_batch = static_cast<int>(d.lhs_batch.size());
  Dims left = free_axes(c.in_types[0], d.lhs_contract, d.lhs_batch);
  Dims right = free_axes(c.in_types[1], d.rhs_contract, d.rhs_batch);
  if (c.batched(0)) {
    d.lhs_contract = shifted(d.lhs_contract, c.dim(0));
    d.lhs_batch = shifted(d.lhs_batch, c.dim(0));
  }
  if (c.batched(1)) {
    d.rhs_contract = shifted(d.rhs_contract, c.dim(1));
    d.rhs_batch = shifted(d.rhs_batch, c.dim(1));
  }
  int out;
  if (c.batched(0) && c.batched(1)) {
    d.lhs_batch.insert(0, c.dim(0));
    d.rhs_batch.insert(0, c.dim(1));
    out = 0;
  } else if (c.batched(0)) {
    out = num_batch + count_before(left, c.dim(0));
  } else {
    out = num_batch + static_cast<int>(left.size()) + count_before(right, c.dim(1));
  }
  std::vector<Dims> numbers = {d.lhs_contract, d.rhs_contract, d.lhs_batch, d.rhs_batch};
  Val xs[] = {c.x(0), c.x(1)};
  c.apply(xs, c.attrs->with({{"dimension_numbers", numbers}}), out);
}

// The mapped axes are summed over like any contracting ones.
Val sum_dot_general(RuleCtx& c) {
  std::vector<Dims> numbers = c.attr().ints_list("dimension_numbers");
  for (Dims& axes : numbers) axes = shifted(axes, 0);
  for (size_t side : {0, 1}) numbers[side].insert(0, 0);
  return apply(c.op, Vals{c.x(0), c.x(1)}, c.attrs->with({{"dimension_numbers", numbers}}))[0];
}

// Of floats of at least 32 bits, none of which is converted.
bool is_plain_product(TypeRef lhs, TypeRef rhs, TypeRef out, const AttrRecord& attrs) {
  DType dtype = out->dtype();
  return attrs.is_none("precision") && lhs->dtype() == dtype && rhs->dtype() == dtype &&
         contains(kFloats, dtype) && info(dtype).bits >= 32;
}
// The same of complex numbers.
bool is_complex_product(TypeRef lhs, TypeRef rhs, TypeRef out, const AttrRecord& attrs) {
  return attrs.is_none("precision") && is_complex(out->dtype()) && lhs->dtype() == out->dtype() &&
         rhs->dtype() == out->dtype();
}
bool is_plain_product(EmitCtx& c) {
  return is_plain_product(c.in_type(0), c.in_type(1), c.out_type(), c.attr());
}

Val arranged(Val x, const Dims& order, const Dims& shape) {
  return reshape(counts_up(order) ? x : transpose(x, order), shape);
}

struct ProductSizes {
  int64_t batch, rows, terms, columns;
  // As a float, which does not overflow.
  double products() const {
    return static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(terms) *
           static_cast<double>(columns);
  }
};

ProductSizes sizes_of(TypeRef lhs, TypeRef rhs, const DotDims& d) {
  return {.batch = product(pick(lhs->shape(), d.lhs_batch)),
          .rows = product(pick(lhs->shape(), free_axes(lhs, d.lhs_contract, d.lhs_batch))),
          .terms = product(pick(lhs->shape(), d.lhs_contract)),
          .columns = product(pick(rhs->shape(), free_axes(rhs, d.rhs_contract, d.rhs_batch)))};
}

// Products of small matrices: a call of XLA's library takes about a microsecond whatever their
// size, a sum of products about 40 ns and 0.08 more for each of them (tools/bench/README.md). A
// product with a vector calls no library.
constexpr double kMostProducts = 1024;
constexpr int64_t kMostTerms = 12;

bool is_small(const ProductSizes& n) {
  return n.rows > 1 && n.columns > 1 && n.terms > 0 && n.terms <= kMostTerms &&
         n.products() <= kMostProducts;
}

bool is_small(EmitCtx& c, const DotDims& d) {
  return c.platform() == "cpu" && !c.has_several_devices() && is_plain_product(c) &&
         is_small(sizes_of(c.in_type(0), c.in_type(1), d));
}

// Sums of few terms are written as chains of operations. A loop over the terms takes twice as long,
// since it begins and ends for each element of the result.
constexpr int64_t kMostTermsInChain = 6;

// In a kernel a product is a loop, of which XLA refuses those that it would give to its library.
bool is_in_kernel(const CostCtx& c) {
  if (!is_same_in_kernel(c)) return false;
  TypeRef out = c.out_types[0];
  if (is_integer(out->dtype())) return true;
  if (!is_plain_product(c.in_types[0], c.in_types[1], out, *c.attrs)) return false;
  ProductSizes n = sizes_of(c.in_types[0], c.in_types[1], dot_dims(*c.attrs));
  return (is_small(n) && n.terms <= kMostTermsInChain) ||
         (n.batch == 1 && (n.rows == 1 || n.columns == 1));
}

// The products of all terms, summed in the order of the terms.
Val sum_of_products(Val x, Val y, const DotDims& d) {
  Dims rows = free_axes(x.type(), d.lhs_contract, d.lhs_batch);
  Dims columns = free_axes(y.type(), d.rhs_contract, d.rhs_batch);
  Dims of_x = pick(x.shape(), joined(d.lhs_batch, rows)), batch = pick(y.shape(), d.rhs_batch);
  Dims of_y = pick(y.shape(), columns), terms{product(pick(x.shape(), d.lhs_contract))};
  x = arranged(x, joined(joined(d.lhs_batch, rows), d.lhs_contract), joined(of_x, terms));
  y = arranged(y, joined(joined(d.rhs_batch, d.rhs_contract), columns),
               joined(joined(batch, terms), of_y));

  Dims shape = joined(joined(of_x, terms), of_y);
  auto summed = static_cast<int64_t>(of_x.size());
  Dims axes_of_y = count_up(static_cast<int>(batch.size()));
  for (int64_t axis = summed; axis < static_cast<int64_t>(shape.size()); ++axis)
    axes_of_y.push_back(axis);
  return reduce_sum(
      broadcast_in_dim(x, shape, count_up(x.rank())) * broadcast_in_dim(y, shape, axes_of_y),
      {summed});
}

// Many products of narrow matrices: XLA on CPU has a loop over three axes for each of them, where
// sums of outer products are one element-wise kernel. Each term is six ops more to compile, so that
// of more than two terms there must be something to gain.
constexpr int64_t kAlwaysInTerms = 2, kFewTerms = 4, kManyElements = 1 << 13;

bool gains_from_terms(EmitCtx& c, const DotDims& d) {
  TypeRef lhs = c.in_type(0), out = c.out_type();
  if (c.platform() != "cpu" || !is_plain_product(c) || d.lhs_batch.empty()) return false;
  int64_t terms = product(pick(lhs->shape(), d.lhs_contract));
  return terms > 1 && terms <= (out->num_elements() >= kManyElements ? kFewTerms : kAlwaysInTerms);
}

Val sum_of_outer_products(Val x, Val y, const DotDims& d, TypeRef out) {
  int64_t num_batch = static_cast<int64_t>(d.lhs_batch.size());
  int64_t terms = product(pick(x.shape(), d.lhs_contract));
  // Of each term the part of one side, as an array like the result, which has the side's first free
  // axis at `first`.
  auto parts = [&](Val side, const Dims& batch, const Dims& contract, int64_t first) {
    Dims free = free_axes(side.type(), contract, batch);
    Dims order = joined(joined(batch, free), contract);
    Dims axes = count_up(static_cast<int>(num_batch));
    for (size_t i = 0; i < free.size(); ++i) axes.push_back(first + static_cast<int64_t>(i));
    Dims kept = pick(side.shape(), joined(batch, free));
    side = arranged(side, order, inserted(kept, static_cast<int>(kept.size()), terms));
    Vals made;
    for (int64_t i = 0; i < terms; ++i) {
      Dims start(kept.size() + 1), limit = side.shape();
      start.back() = i;
      limit.back() = i + 1;
      made.push_back(
          broadcast_in_dim(reshape(slice(side, start, limit), kept), out->shape(), axes));
    }
    return made;
  };
  int64_t first_of_rhs = x.rank() - static_cast<int64_t>(d.lhs_contract.size());
  Vals lhs = parts(x, d.lhs_batch, d.lhs_contract, num_batch);
  Vals rhs = parts(y, d.rhs_batch, d.rhs_contract, first_of_rhs);
  Val sum = lhs[0] * rhs[0];
  for (size_t i = 1; i < lhs.size(); ++i) sum = sum + lhs[i] * rhs[i];
  return sum;
}

Val small_product(Val x, Val y, const DotDims& d, TypeRef out) {
  if (sizes_of(x.type(), y.type(), d).terms <= kMostTermsInChain)
    return sum_of_outer_products(x, y, d, out);
  return sum_of_products(x, y, d);
}

GraphRef graph_of_small_product(const EmitCtx& c, const DotDims& d) {
  GraphBuilder b;
  Val x{&b, b.input(c.in_type(0))}, y{&b, b.input(c.in_type(1))};
  Value made = small_product(x, y, d, c.out_type()).value;
  return b.finish({&made, 1});
}

// Products that a kernel makes as sums, and a program as a call of the library. From 48 terms on
// such sums take many times as long.
constexpr int64_t kMostTermsInKernel = 32, kMostProductsInKernel = 1 << 14;

Vals product_for_kernel(RuleCtx& c) {
  if (!is_plain_product(c.in_types[0], c.in_types[1], c.out_types[0], c.attr()) &&
      !is_complex_product(c.in_types[0], c.in_types[1], c.out_types[0], c.attr()))
    return {};
  DotDims d = dot_dims(c.attr());
  ProductSizes n = sizes_of(c.in_types[0], c.in_types[1], d);
  if (n.terms == 0 || n.terms > kMostTermsInKernel || n.products() > kMostProductsInKernel)
    return {};
  return {small_product(c.x(0), c.x(1), d, c.out_types[0])};
}

// Sums along leading axes of lhs, as in gradients of weights: XLA's fast kernels on CPU go along
// rows of lhs, and what it has for other products takes up to three times as long. A transposed
// copy is worth it where there is enough to multiply and lhs stays in the caches
// (tools/bench/README.md).
bool gains_from_rows(EmitCtx& c, const DotDims& d) {
  TypeRef lhs = c.in_type(0), rhs = c.in_type(1);
  if (c.platform() != "cpu" || c.has_several_devices() || !is_plain_product(c)) return false;
  if (is_in_rows(lhs, d.lhs_contract, d.lhs_batch)) return false;
  int64_t batch = product(pick(lhs->shape(), d.lhs_batch));
  int64_t terms = product(pick(lhs->shape(), d.lhs_contract));
  int64_t rows = product(pick(lhs->shape(), free_axes(lhs, d.lhs_contract, d.lhs_batch)));
  int64_t columns = product(pick(rhs->shape(), free_axes(rhs, d.rhs_contract, d.rhs_batch)));
  // Of little, the copy takes next to nothing; where there are few results, nothing is gained.
  if (batch == 1 && rows > 1 && columns > 1 && rows * columns >= 64 &&
      lhs->num_elements() <= (columns < 64 ? 1024 : 2048))
    return true;
  // Of floats, which do not overflow.
  double products =
      static_cast<double>(batch * terms) * static_cast<double>(rows) * static_cast<double>(columns);
  if (batch > 1)
    return products >= 1 << 16 && std::min({terms, rows, columns}) >= 16 && columns <= 64 &&
           lhs->num_elements() + rhs->num_elements() <= 1 << 19;
  return products >= (rows < columns ? 1 << 21 : 1 << 19) && columns > 1 &&
         terms <= 64 * (rows + columns) && lhs->num_elements() <= 1 << 20;
}

// XLA would fold the transpose into the product again, and make what lhs is made of a second time,
// in the other layout: hence the barriers.
Val product_along_rows(Val x, Val y, const DotDims& d, const AttrRecord& attrs, DType dtype) {
  Dims free = free_axes(x.type(), d.lhs_contract, d.lhs_batch);
  x = transpose(optimization_barrier(Vals{x})[0],
                joined(joined(d.lhs_batch, free), d.lhs_contract));
  x = optimization_barrier(Vals{x})[0];
  int num_batch = static_cast<int>(d.lhs_batch.size());
  DotDims in_rows = d;
  in_rows.lhs_batch = count_up(num_batch);
  in_rows.lhs_contract.clear();
  for (size_t i = 0; i < d.lhs_contract.size(); ++i)
    in_rows.lhs_contract.push_back(num_batch + static_cast<int64_t>(free.size() + i));
  return dot_general(x, y, in_rows, dtype, attrs.at("precision"));
}

void emit_dot_general(EmitCtx& c) {
  DotDims d = dot_dims(c.attr());
  if (is_small(c, d)) return emit_call(c, graph_of_small_product(c, d), "product", kNoInline);
  if (gains_from_terms(c, d))
    return emit_as(
        c, [&](const Vals& xs) { return sum_of_outer_products(xs[0], xs[1], d, c.out_type()); });
  if (gains_from_rows(c, d))
    return emit_as(c, [&](const Vals& xs) {
      return product_along_rows(xs[0], xs[1], d, c.attr(), c.out_type()->dtype());
    });
  emit_product(c, [&](std::string_view x, std::string_view y) {
    Text t;
    t << "stablehlo.dot_general " << x << ", " << y;
    if (!d.lhs_batch.empty())
      t << ", batching_dims = " << bracketed(d.lhs_batch) << " x " << bracketed(d.rhs_batch);
    t << ", contracting_dims = " << bracketed(d.lhs_contract) << " x " << bracketed(d.rhs_contract);
    std::string_view precision = precision_name(c.attr());
    t << ", precision = [" << precision << ", " << precision << ']' << algorithm_text(c);
    return t.take();
  });
}

// Of two matrices, or vectors.
std::optional<KernelCall> kernel_of_dot_general(const CostCtx& c) {
  TypeRef lhs = c.in_types[0], rhs = c.in_types[1];
  DotDims d = dot_dims(*c.attrs);
  if (!is_plain_product(lhs, rhs, c.out_types[0], *c.attrs) || !d.lhs_batch.empty() ||
      d.lhs_contract.size() != 1 || lhs->rank() > 2 || rhs->rank() > 2)
    return {};
  int64_t terms = lhs->shape()[static_cast<size_t>(d.lhs_contract[0])];
  if (terms == 0 ||
      !is_small_product(lhs->num_elements() / terms, terms, rhs->num_elements() / terms))
    return {};
  return KernelCall{kSmallProduct, cat("lhs_contract = ", d.lhs_contract[0],
                                       " : i64, rhs_contract = ", d.rhs_contract[0], " : i64")};
}

Cost cost_dot_general(const CostCtx& c) {
  Cost cost = cost_bytes(c);
  Dims contracted = pick(c.in_types[0]->shape(), c.attrs->ints_list("dimension_numbers")[0]);
  cost.flops = 2.0 * static_cast<double>(c.out_types[0]->num_elements()) *
               static_cast<double>(product(contracted));
  return cost;
}

// Sums over dimensions that both sides split could stay apart, or be added up in several ways.
void place_dot_general(PlaceCtx& c) {
  DotDims d = dot_dims(c.attr());
  std::vector<Dims> to;
  int64_t next = static_cast<int64_t>(d.lhs_batch.size());
  auto add = [&](TypeRef type, const Dims& contract, const Dims& batch) {
    Dims places(type->shape().size(), kGone);
    for (size_t i = 0; i < batch.size(); ++i)
      places[static_cast<size_t>(batch[i])] = static_cast<int64_t>(i);
    for (int64_t axis : free_axes(type, contract, batch))
      places[static_cast<size_t>(axis)] = next++;
    to.push_back(places);
  };
  add(c.in_types[0], d.lhs_contract, d.lhs_batch);
  add(c.in_types[1], d.rhs_contract, d.rhs_batch);
  auto axes = [&](size_t side, int64_t dim) {
    return c.in[side]->dim(static_cast<size_t>(dim)).axes;
  };
  // lhs says how the batch is split.
  for (size_t i = 0; i < d.lhs_batch.size(); ++i)
    if (axes(0, d.lhs_batch[i]).empty()) to[1][static_cast<size_t>(d.rhs_batch[i])] = kGone;
  for (size_t i = 0; i < d.lhs_contract.size(); ++i) {
    if (axes(0, d.lhs_contract[i]).empty() || axes(1, d.rhs_contract[i]).empty()) continue;
    Split one(c.out_types[0]->shape().size()), other = one;
    for (size_t side : {0, 1})
      for (size_t dim = 0; dim < to[side].size(); ++dim)
        if (to[side][dim] >= 0)
          (side ? other : one)[static_cast<size_t>(to[side][dim])] = c.in[side]->dim(dim).axes;
    Split choices[] = {one, other};
    return place_ambiguous(c, "both are split where their products are summed up", choices);
  }
  place_dims(c, to);
}

// XLA does the same, and then reads the operand across; here it is known in time
// (emit_dot_general).
Vals product_of_transpose(SimplifyCtx& c) {
  std::vector<Dims> numbers = c.attr().ints_list("dimension_numbers");
  if (!numbers[2].empty()) return {};
  Val sides[] = {c.x(0), c.x(1)};
  bool changes = false;
  for (size_t i : {0, 1}) {
    const Op* op = c.made_by<"transpose">(sides[i]);
    if (!op) continue;
    const Dims& permutation = op->attrs->ints("permutation");
    Dims free = pick(permutation, free_axes(sides[i].type(), numbers[i], {}));
    if (!std::is_sorted(free.begin(), free.end())) continue;
    numbers[i] = pick(permutation, numbers[i]);
    sides[i] = c.operand(*op, 0);
    changes = true;
  }
  if (!changes) return {};
  return apply(op_named<"dot_general">(), Vals{sides[0], sides[1]},
               c.attrs->with({{"dimension_numbers", numbers}}));
}

OpDef dot_general_op() {
  OpDef d;
  d.name = "dot_general";
  d.doc = "Products of two arrays summed over contracting axes, one product per batch index.";
  d.attrs = {
      {"dimension_numbers", AttrType::kIntsPairs}, precision_attr(), preferred_element_type_attr()};
  d.num_operands = 2;
  d.infer = infer_dot_general;
  d.place = place_dot_general;
  d.jvp_kind = JvpKind::kArgs;
  d.jvp_args = bilinear_jvp();
  d.transpose = [](TransposeCtx& c) { transpose_side(c, c.linear(0) ? 0 : 1); };
  d.batch = batch_dot_general;
  d.shares_unmapped = true;
  d.mapped_sum = sum_dot_general;
  d.emit = emit_dot_general;
  d.kernel = kernel_of_dot_general;
  d.in_kernel = is_in_kernel;
  d.for_kernel = product_for_kernel;
  d.simplify = {{"product_of_transpose",
                 "dot_general(transpose(x), y) -> dot_general(x, y), where nothing is batched",
                 product_of_transpose}};
  d.cost = cost_dot_general;
  return d;
}

}  // namespace

// XLA makes the transpose of a product in the layout that it has anyhow, and copies that into the
// one that is asked for: results of vmap(grad) are written and read twice. Of products that are
// summed up it takes one with the sides exchanged, also where that costs more: where the sums are
// along the last axes of lhs and not of rhs, which then is read across.
Vals transpose_of_product(SimplifyCtx& c) {
  const Op* op = c.made_by<"dot_general">(c.x(0));
  if (!op) return {};
  DotDims d = dot_dims(*op->attrs);
  bool sums = !d.lhs_contract.empty();
  if (sums && (!d.lhs_batch.empty() || !c.is_only_use(c.x(0)))) return {};
  const Dims& permutation = c.attr().ints("permutation");
  auto num_batch = static_cast<std::ptrdiff_t>(d.lhs_batch.size());
  Dims batch(permutation.begin(), permutation.begin() + num_batch);
  Dims free(permutation.begin() + num_batch, permutation.end());
  if (std::any_of(batch.begin(), batch.end(), [&](int64_t i) { return i >= num_batch; })) return {};
  Val sides[] = {c.operand(*op, 0), c.operand(*op, 1)};
  std::vector<Dims> numbers = {d.lhs_contract, d.rhs_contract, pick(d.lhs_batch, batch),
                               pick(d.rhs_batch, batch)};
  if (!std::is_sorted(free.begin(), free.end())) {
    auto num_free = sides[0].type()->rank() - num_batch - std::ssize(d.lhs_contract);
    std::rotate(free.begin(), free.end() - num_free, free.end());
    if (!std::is_sorted(free.begin(), free.end())) return {};
    if (sums && is_in_rows(sides[0].type(), d.lhs_contract, d.lhs_batch) &&
        !is_in_rows(sides[1].type(), d.rhs_contract, d.rhs_batch))
      return {};
    std::swap(sides[0], sides[1]);
    std::swap(numbers[0], numbers[1]);
    std::swap(numbers[2], numbers[3]);
  }
  return apply(op_named<"dot_general">(), Vals{sides[0], sides[1]},
               op->attrs->with({{"dimension_numbers", numbers}}));
}

void register_dot(OpRegistry& r) { r.add(dot_general_op()); }

}  // namespace weft
