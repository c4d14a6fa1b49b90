// Ops that know which platform a program is for.
#include <algorithm>

#include "ops/control/family.h"
#include "ops/def/presets.h"

namespace weft {
namespace {

// The parts of "cpu;cuda,rocm".
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// The number of the part that names the platform; of parts if none does.
size_t index_of_platform(std::string_view platforms, std::string_view platform) {
  std::vector<std::string_view> parts = parts_of(platforms, ';');
  return static_cast<size_t>(
      std::find_if(parts.begin(), parts.end(),
                   [&](std::string_view names) {
                     std::vector<std::string_view> all = parts_of(names, ',');
                     return std::find(all.begin(), all.end(), platform) != all.end();
                   }) -
      parts.begin());
}

OpDef platform_op(std::string name, std::string doc) {
  OpDef d;
  d.name = std::move(name);
  d.doc = std::move(doc);
  d.attrs = {{"platforms", AttrType::kString}};
  d.num_operands = 0;
  zero_tangent(d);
  d.cost = [](const CostCtx&) { return Cost{}; };
  return d;
}

// The index of the branch for a platform, known when the program is emitted. A cond on it is
// emitted as that branch.
OpDef platform_index_op() {
  OpDef d = platform_op("platform_index",
                        "Which of several groups has the platform that the program is for.");
  d.infer = [](const InferCtx&) { return TypeRefs{scalar_type(DType::kI32)}; };
  d.emit = [](EmitCtx& c) {
    size_t index = index_of_platform(c.attr().string("platforms"), c.platform());
    c.set_out(0, c.constant(make_literal(DType::kI32, static_cast<int64_t>(index)), {}));
  };
  return d;
}

// An effect, so that it fails whatever becomes of the branches.
OpDef require_platform_op() {
  OpDef d = platform_op("require_platform", "Lets a program be emitted for some platforms only.");
  d.multiple_results = true;
  d.effects = kUnordered;
  d.infer = [](const InferCtx&) { return TypeRefs(); };
  d.emit = [](EmitCtx& c) {
    const std::string& platforms = c.attr().string("platforms");
    if (index_of_platform(platforms, c.platform()) < parts_of(platforms, ';').size()) return;
    fail(ErrorKind::kNotImplemented, "[platform_dependent] expected a branch for platform ",
         c.platform(), ", or a default; got branches for ", platforms);
  };
  return d;
}

}  // namespace

void register_platform(OpRegistry& r) {
  r.add(platform_index_op());
  r.add(require_platform_op());
}

}  // namespace weft
