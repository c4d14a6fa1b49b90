#include "read/linalg.h"

#include <algorithm>

#include "ops/products/linalg.h"

namespace weft::reader {

namespace {

// What a call says: letters and numbers by their names.
struct Call {
  OpText& op;
  const NamedList& config;

  char letter(std::string_view name) const {
    for (const Named& field : config)
      if (field.name == name) return static_cast<char>(op.document.integer(field.value));
    op.fail("expected the attribute ", name);
  }
  bool flag(std::string_view name) const {
    for (const Named& field : config)
      if (field.name == name) return op.document.boolean(field.value);
    op.fail("expected the attribute ", name);
  }
  Val x(size_t i) const {
    if (i >= op.size()) op.fail("expected at least ", i + 1, " operands; got ", op.size());
    return op.x(i);
  }
  // The results, then zeros for what says that nothing went wrong, or was not asked for.
  void give(const Vals& made) const {
    for (size_t i = 0; i < op.types.size(); ++i) {
      TypeRef type = op.out_type(i);
      bool known = i < made.size() && made[i];
      op.result(known ? made[i] : zeros(op.b, type));
    }
  }
};

Val is_upper(Val x) {
  TypeRef type = make_type(DType::kI32, x.shape());
  return le(iota(*x.builder, type, x.rank() - 2), iota(*x.builder, type, x.rank() - 1));
}

// The other triangle stays what it was.
void potrf(const Call& c) {
  Val a = c.x(0);
  bool lower = c.letter("uplo") == 'L';
  Val factor =
      lower ? apply1("cholesky", {a}) : linalg::adjoint(apply1("cholesky", {linalg::adjoint(a)}));
  Val upper = is_upper(a);
  Val inside = lower ? logical_or(logical_not(upper), linalg::on_diagonal(a)) : upper;
  Val failed = reduce_or(ne(factor, factor), {a.rank() - 2, a.rank() - 1});
  c.give({select(inside, factor, a), convert(failed, DType::kI32)});
}

void getrf(const Call& c) {
  Vals made = weft::apply("lu", {c.x(0)});
  c.give({made[0], made[1] + 1.0});  // LAPACK counts from 1
}

// R stands above the reflectors. Its derivative is that of `qr`; reflectors have none.
void geqrf(const Call& c) {
  Val a = c.x(0);
  Vals made = weft::apply("geqrf", {apply1("stop_gradient", {a})});
  Val r = weft::apply("qr", {a}, {{"full_matrices", false}})[1];
  int64_t more = linalg::rows_of(a.type()) - linalg::rows_of(r.type());
  Val packed = select(is_upper(a), linalg::padded(r, more, 0), made[0]);
  c.give({packed, made[1]});
}

void geqp3(const Call& c) { c.give(weft::apply("geqp3", {c.x(0), c.x(1)})); }

// Q of a matrix whose factors are known is that of `qr`, which has a derivative.
void orgqr(const Call& c) {
  Val reflectors = c.x(0), taus = c.x(1);
  if (const Op* factors = made_by<"geqrf">(taus)) {
    Val a{&c.op.b, c.op.b.operands(*factors)[0]};
    if (const Op* stop = made_by<"stop_gradient">(a)) a.value = c.op.b.operands(*stop)[0];
    int64_t m = linalg::rows_of(a.type()), k = linalg::columns_of(reflectors.type());
    bool all = k == m, some = k == linalg::smaller_of(a.type());
    if (linalg::rows_of(reflectors.type()) == m && (all || some))
      return c.give({weft::apply("qr", {a}, {{"full_matrices", !some}})[0]});
  }
  c.give({apply1("householder_product", {reflectors, taus})});
}

void syevd(const Call& c) {
  c.give(weft::apply("eigh", {c.x(0)},
                     {{"lower", c.letter("uplo") == 'L'}, {"sort_eigenvalues", true}}));
}

void svd(const Call& c, std::string algorithm) {
  char mode = c.letter("mode");
  Vals made = weft::apply("svd", {c.x(0)},
                          {{"compute_uv", mode != 'N'},
                           {"full_matrices", mode == 'A'},
                           {"algorithm", std::move(algorithm)}});
  Vals results{c.x(0)};
  results.append(made);
  c.give(results);
}

void gesdd(const Call& c) { svd(c, "default"); }
void gesvd(const Call& c) { svd(c, "QR"); }

void ormqr(const Call& c) {
  c.give({apply1("ormqr", {c.x(0), c.x(1), c.x(2)},
                 {{"left", c.flag("left")}, {"transpose", c.flag("transpose")}})});
}

void trsm(const Call& c) {
  char turned = c.letter("trans_x");
  c.give({apply1("triangular_solve", {c.x(0), c.x(1)},
                 {{"left_side", c.letter("side") == 'L'},
                  {"lower", c.letter("uplo") == 'L'},
                  {"transpose_a", turned != 'N'},
                  {"conjugate_a", turned == 'C'},
                  {"unit_diagonal", c.letter("diag") == 'U'}})});
}

void geev(const Call& c) {
  Val a = c.x(0);
  bool left = c.letter("compute_left") == 'V', right = c.letter("compute_right") == 'V';
  Vals made = weft::apply("eig", {a},
                          {{"compute_left_eigenvectors", left},
                           {"compute_right_eigenvectors", right},
                           {"enable_eigvec_derivs", true}});
  Vals results;
  if (is_complex(a.dtype())) {
    results = {made[0]};
  } else {
    results = {real(made[0]), imag(made[0])};
  }
  results.push_back(left ? made[1] : Val{});
  results.push_back(right ? made.back() : Val{});
  c.give(results);
}

void gees(const Call& c) {
  if (c.letter("sort") != 'N') c.op.refuse("expected no order of the eigenvalues");
  bool vectors = c.letter("mode") == 'V';
  Vals made = weft::apply("schur", {c.x(0)}, {{"compute_schur_vectors", vectors}});
  // What programs take of the eigenvalues stands on the diagonal of a triangular form, not of a
  // quasi-triangular one.
  c.give(made);
}

void gehrd(const Call& c) { c.give(weft::apply("hessenberg", {c.x(0)})); }

void sytrd(const Call& c) {
  c.give(weft::apply("tridiagonal", {c.x(0)}, {{"lower", c.letter("uplo") == 'L'}}));
}

void gtsv(const Call& c) {
  Val solved = apply1("tridiagonal_solve", {c.x(0), c.x(1), c.x(2), c.x(3)});
  c.give({c.x(0), c.x(1), c.x(2), solved});
}

struct Solver {
  std::string_view name;  // without "lapack_", the letter of the dtype, and "_ffi"
  void (*apply)(const Call&);
};
constexpr Solver kSolvers[] = {
    {"gees", gees},   {"geev", geev},   {"gehrd", gehrd}, {"geqp3", geqp3}, {"geqrf", geqrf},
    {"gesdd", gesdd}, {"gesvd", gesvd}, {"getrf", getrf}, {"gtsv", gtsv},   {"heevd", syevd},
    {"hetrd", sytrd}, {"orgqr", orgqr}, {"ormqr", ormqr}, {"potrf", potrf}, {"syevd", syevd},
    {"sytrd", sytrd}, {"trsm", trsm},   {"ungqr", orgqr}, {"unmqr", ormqr},
};

const Solver* solver(std::string_view target) {
  constexpr std::string_view kBegin = "lapack_", kEnd = "_ffi";
  if (!target.starts_with(kBegin) || !target.ends_with(kEnd)) return nullptr;
  if (target.size() < kBegin.size() + kEnd.size() + 1) return nullptr;
  target.remove_prefix(kBegin.size() + 1);
  target.remove_suffix(kEnd.size());
  for (const Solver& known : kSolvers)
    if (known.name == target) return &known;
  return nullptr;
}

}  // namespace

bool find_solver(std::string_view target) { return solver(target) != nullptr; }

void apply_solver(OpText& op, std::string_view target, const NamedList& config) {
  solver(target)->apply({op, config});
}

}  // namespace weft::reader
