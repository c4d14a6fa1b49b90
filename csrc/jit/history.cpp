// Signatures compared, and what is kept of misses as objects of Python.

#include "jit/history.h"

#include <algorithm>

#include "conversions/placement.h"
#include "references/lru_table.h"
#include "weft/hash.h"

namespace weft::py {
namespace {

// Functions by their code: those that are made anew at each call have it in common.
constexpr size_t kMaxCodes = 1024;
using Codes = LruTable<Ref, uint64_t>;

Codes& codes() {
  static auto* all = new Codes("traced_code", kMaxCodes);
  return *all;
}

std::string axes_text(const NamedAxes& axes) {
  Text out;
  for (const NamedAxis& axis : axes)
    out << (out.size() ? ", " : "") << axis.name << "=" << axis.size;
  return axes.empty() ? "none" : out.take();
}

void set(const Ref& dict, const char* key, Ref value) {
  check(PyDict_SetItemString(dict.get(), key, value.get()));
}
Ref number(uint64_t n) { return Ref::checked(PyLong_FromUnsignedLongLong(n)); }
Ref real(double x) { return Ref::checked(PyFloat_FromDouble(x)); }
Ref truth(bool b) { return Ref::borrow(b ? Py_True : Py_False); }
Ref or_none(const Ref& o) { return o ? o : Ref::borrow(Py_None); }
Ref loc_object(Loc loc) { return loc == kNoLoc ? Ref::borrow(Py_None) : to_text(loc_text(loc)); }

template <typename Items, typename F>
Ref list_of(const Items& items, F&& object) {
  Ref list = Ref::checked(PyList_New(0));
  for (const auto& item : items) check(PyList_Append(list.get(), object(item).get()));
  return list;
}

}  // namespace

int Miss::traverse(visitproc visit, void* arg) const {
  Py_VISIT(structure.get());
  Py_VISIT(structure_before.get());
  for (const Static& s : statics) {
    Py_VISIT(s.key.get());
    Py_VISIT(s.now.get());
    Py_VISIT(s.before.get());
  }
  return 0;
}

void History::add(MissRef miss) {
  misses_.push_back(std::move(miss));
  if (misses_.size() <= kMax) return;
  MissRef oldest = std::move(misses_.front());  // destroyed when the list is whole
  misses_.pop_front();
  ++dropped_;
}

void History::clear() {
  std::deque<MissRef> all = std::move(misses_);
  misses_.clear();
  was_cleared_ = true;
}

const Miss* History::last(uint64_t hash) const {
  for (auto it = misses_.rbegin(); it != misses_.rend(); ++it)
    if ((*it)->hash == hash) return it->get();
  return nullptr;
}

int History::traverse(visitproc visit, void* arg) const {
  for (const MissRef& miss : misses_)
    if (miss.use_count() == 1)  // else somebody is at it
      if (int stop = miss->traverse(visit, arg)) return stop;
  return 0;
}

void compare(Miss& miss, const Signature& now, const Signature& before) {
  miss.leaves_before = before.leaves.size();
  bool same_count = now.leaves.size() == before.leaves.size();
  miss.structure = now.structure;
  miss.structure_before = before.structure;
  miss.other_structure = now.structure.get() != before.structure.get();
  for (size_t i = 0; same_count && i < now.leaves.size(); ++i) {
    if (now.leaves[i] == before.leaves[i]) continue;
    if (++miss.num_different <= Miss::kMaxDifferences)
      miss.leaves.push_back({i, now.leaves[i], before.leaves[i]});
  }
  bool same_keys = now.statics.size() == before.statics.size();
  for (size_t i = 0; same_keys && i < now.statics.size(); ++i) {
    if (now.statics[i].get() == before.statics[i].get()) continue;
    Ref key = Ref::borrow(PyTuple_GET_ITEM(now.static_keys(), static_cast<Py_ssize_t>(i)));
    miss.statics.push_back({key, now.statics[i], before.statics[i]});
  }
  for (const Setting& s : kSettings) {
    // kRandom is all of those of weft.random, which stand for themselves.
    if (!s.traced || s.name == kRandom.name) continue;
    if (uint64_t a = s.of(now.settings), b = s.of(before.settings); a != b)
      miss.texts.push_back({std::string(s.name), cat(a), cat(b)});
  }
  if (now.axes != before.axes)
    miss.texts.push_back({"named axes", axes_text(now.axes), axes_text(before.axes)});
  if (now.axes == before.axes && now.varying != before.varying) {
    auto text = [&](const Signature& s) {
      std::string sets;
      for (size_t i = 0; s.varying && i < s.varying->size(); ++i) {
        std::string names;
        AxisSet bit = 1;
        for (const NamedAxis& axis : s.axes) {
          if (!axis.varies) continue;
          if ((*s.varying)[i] & bit) names += cat(names.empty() ? "" : ",", axis.name);
          bit <<= 1;
        }
        sets += cat(i ? ", " : "", "{", names, "}");
      }
      return s.varying ? sets : std::string("not known");
    };
    miss.texts.push_back({"variation over axes", text(now), text(before)});
  }
  auto split = [](const Signature& s, size_t i) {
    return s.splits.empty() ? nullptr : s.splits[i];
  };
  for (size_t i = 0; same_count && i < now.leaves.size(); ++i) {
    ShardingRef a = split(now, i), b = split(before, i);
    if (a == b || miss.texts.size() >= Miss::kMaxDifferences) continue;
    auto text = [](ShardingRef s) { return s ? describe(s) : "not split"; };
    miss.texts.push_back({cat("sharding ", i), text(a), text(b)});
  }
}

uint64_t functions_of_same_code(PyObject* function, bool add) {
  if (PyMethod_Check(function)) function = PyMethod_GET_FUNCTION(function);
  if (!PyFunction_Check(function)) return 0;
  Ref code = Ref::borrow(PyFunction_GET_CODE(function));
  uint64_t hash = hash_pointer(code.get());
  auto known = codes().find(hash, [&](const Ref& c) { return c.get() == code.get(); });
  if (known) return add ? (*known)++ : *known;
  if (add) codes().insert(hash, std::move(code), 1);
  return 0;
}

Ref kernel_object(const Kernels::Kernel& kernel) {
  return Ref::checked(Py_BuildValue("(KddN)", static_cast<unsigned long long>(kernel.num_ops),
                                    kernel.saved, kernel.apart, loc_object(kernel.loc).release()));
}

Ref compilation_object(const Compilation& c) {
  const CompileCost& cost = c.cost;
  return Ref::checked(Py_BuildValue(
      "(sdddKKKKKKKKN)", c.why.c_str(), cost.optimize, cost.emit, cost.compile,
      static_cast<unsigned long long>(cost.ops), static_cast<unsigned long long>(cost.modules),
      static_cast<unsigned long long>(cost.in_memory),
      static_cast<unsigned long long>(cost.from_disk), static_cast<unsigned long long>(cost.blocks),
      static_cast<unsigned long long>(cost.rolled), static_cast<unsigned long long>(cost.loops),
      static_cast<unsigned long long>(cost.packed),
      list_of(cost.kernels, kernel_object).release()));
}

Ref miss_object(const Miss& miss) {
  static const char* const causes[] = {"first",  "fresh",  "cleared", "forgotten", "outer",
                                       "leaked", "failed", "differs", "stored",    "runs_only"};
  Ref dict = Ref::checked(PyDict_New());
  set(dict, "cause", to_text(causes[miss.cause]));
  set(dict, "line", loc_object(miss.loc));
  set(dict, "note", to_text(miss.note));
  set(dict, "others", number(miss.others));
  set(dict, "num_leaves", number(miss.num_leaves));
  set(dict, "leaves_before", number(miss.leaves_before));
  set(dict, "num_different", number(miss.num_different));
  set(dict, "leaves", list_of(miss.leaves, [](const Miss::Leaf& l) {
        Ref at = number(l.number), now = to_text(leaf_text(l.now)),
            before = to_text(leaf_text(l.before));
        return Ref::checked(PyTuple_Pack(3, at.get(), now.get(), before.get()));
      }));
  set(dict, "other_structure", truth(miss.other_structure));
  set(dict, "structure", or_none(miss.structure));
  set(dict, "structure_before", or_none(miss.structure_before));
  set(dict, "statics", list_of(miss.statics, [](const Miss::Static& s) {
        return Ref::checked(PyTuple_Pack(3, s.key.get(), s.now.get(), s.before.get()));
      }));
  set(dict, "texts", list_of(miss.texts, [](const Miss::Texts& t) {
        Ref what = to_text(t.what), now = to_text(t.now), before = to_text(t.before);
        return Ref::checked(PyTuple_Pack(3, what.get(), now.get(), before.get()));
      }));
  set(dict, "seconds", miss.seconds < 0 ? Ref::borrow(Py_None) : real(miss.seconds));
  set(dict, "ops", number(miss.ops));
  set(dict, "is_nested", truth(miss.is_nested));
  set(dict, "compilations", list_of(miss.compilations, compilation_object));
  return dict;
}

}  // namespace weft::py
