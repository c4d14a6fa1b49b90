#include "ops/elementwise/accuracy.h"

#include <algorithm>
#include <cctype>

#include "ops/def/presets.h"

namespace weft {
namespace {

constexpr std::string_view kHighest = "HIGHEST";

void check_accuracy(const InferCtx& c) {
  if (c.attr().is_none("accuracy")) return;
  const std::string& accuracy = c.attr().string("accuracy");
  auto is_plain = [](unsigned char ch) {
    return std::isalnum(ch) ||
           std::string_view("=+-., ").find(static_cast<char>(ch)) != std::string::npos;
  };
  if (accuracy == kHighest ||
      (accuracy.starts_with("atol = ") && std::all_of(accuracy.begin(), accuracy.end(), is_plain)))
    return;
  c.fail(ErrorKind::kValue,
         "expected accuracy to be HIGHEST or tolerances; got accuracy=", accuracy);
}

void emit_accurate(EmitCtx& c, std::string_view hlo) {
  const std::string& accuracy = c.attr().string("accuracy");
  bool is_mode = accuracy == kHighest;
  c.set_out(0, c.line(cat(hlo, " ", c.in(0), " {result_accuracy = #stablehlo.result_accuracy<",
                          is_mode ? "" : accuracy + ", ", "mode = #stablehlo.result_accuracy_mode<",
                          is_mode ? kHighest : "TOLERANCE", ">>} : ", mlir_type(c.out_type()))));
}

}  // namespace

OpDef with_accuracy(OpDef def, std::string hlo) {
  def.attrs = {{"accuracy", AttrType::kString, AttrSpec::kOptional | AttrSpec::kHideDefault}};
  def.infer = [infer = std::move(def.infer)](const InferCtx& c) {
    check_accuracy(c);
    return infer(c);
  };
  if (!hlo.empty())
    def.emit = [emit = std::move(def.emit), hlo = std::move(hlo)](EmitCtx& c) {
      bool is_plain = c.attr().is_none("accuracy") || is_complex(c.out_type()->dtype());
      is_plain ? emit(c) : emit_accurate(c, hlo);
    };
  return def;
}

}  // namespace weft
