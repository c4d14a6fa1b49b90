// Where things stand in the lists that loops take and give: scan, while and custom_linear_solve.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ops/def/dependence.h"
#include "ops/def/regions.h"

namespace weft {

// A part of a list, with a name for messages.
struct Segment {
  std::string_view name;
  size_t begin = 0, size = 0;

  size_t end() const { return begin + size; }
  bool has(size_t i) const { return i >= begin && i < end(); }
  template <typename List>
  List of(const List& list) const {
    return List(std::span(list.begin(), list.size()).subspan(begin, size));
  }
};

// The segments of a list: the operands of a scan are consts, carry and xs, and its results are
// carry and ys. Rules derive lists of the same segments from it, those of the tangents, say.
class LoopLayout {
 public:
  LoopLayout() = default;
  // Segments that follow one another, each with its number of entries.
  LoopLayout(std::initializer_list<std::pair<std::string_view, size_t>> segments) {
    for (const auto& [name, size] : segments) append(name, size);
  }
  void append(std::string_view name, size_t size) {
    segments_.push_back({name, segments_.empty() ? 0 : segments_.back().end(), size});
  }

  const Segment& operator[](size_t k) const { return segments_[k]; }
  const Segment& back() const { return segments_.back(); }
  size_t num_segments() const { return segments_.size(); }
  size_t size() const {
    size_t total = 0;
    for (const Segment& s : segments_) total += s.size;
    return total;
  }

  // Some of the segments, where they stand in this list: what one of the graphs of a loop takes.
  LoopLayout select(std::initializer_list<size_t> which) const {
    LoopLayout out;
    for (size_t k : which) out.segments_.push_back(segments_[k]);
    return out;
  }
  // The layout of what a mask keeps of a list.
  LoopLayout kept(const Mask& mask) const {
    LoopLayout out;
    for (const Segment& s : segments_) out.append(s.name, count(s.of(mask)));
    return out;
  }

  // The same segments, one after the other.
  LoopLayout packed() const {
    LoopLayout out;
    for (const Segment& s : segments_) out.append(s.name, s.size);
    return out;
  }
  // What the segments hold of a list: one list for each, or one for all.
  template <typename List>
  std::vector<List> unpack(const List& list) const {
    std::vector<List> out;
    for (const Segment& s : segments_) out.push_back(s.of(list));
    return out;
  }
  template <typename List>
  List pack(const List& list) const {
    List out;
    for (const Segment& s : segments_) out.append(s.of(list));
    return out;
  }
  // Sets the entries of a mask for which `packed` holds.
  void add_to(Mask& list, const Mask& packed) const {
    size_t next = 0;
    for (const Segment& s : segments_)
      for (size_t i = s.begin; i < s.end(); ++i, ++next) list[i] = list[i] || packed[next];
  }
  // Checks that a graph takes what the segments hold of an op's operands, for its inference.
  void check_inputs(const InferCtx& c, std::string_view graph_name, const Graph& graph) const {
    size_t next = 0;
    for (const Segment& s : segments_)
      for (size_t i = s.begin; i < s.end(); ++i, ++next)
        check_region_type(c, graph_name, "input", next, c.in(i), graph.input_types()[next]);
  }

 private:
  SmallVector<Segment, 5> segments_;
};

// Two lists of the same segments as one: of each segment what the first list has, then what the
// second one has. A loop on values and tangents has operands like that.
struct Zipped {
  LoopLayout first, second;

  LoopLayout both() const {
    LoopLayout out;
    for (size_t k = 0; k < first.num_segments(); ++k)
      out.append(first[k].name, first[k].size + second[k].size);
    return out;
  }
  Zipped select(std::initializer_list<size_t> which) const {
    return {first.select(which).packed(), second.select(which).packed()};
  }
  // From one list after the other, and back.
  template <typename List>
  List zip(const List& list) const {
    List out;
    for (size_t k = 0; k < first.num_segments(); ++k) {
      out.append(first[k].of(list));
      out.append(in_second(k).of(list));
    }
    return out;
  }
  template <typename List>
  List unzip(const List& list) const {
    List ones, others;
    std::span rest(list.begin(), list.size());
    auto take = [&](size_t n) {
      auto piece = rest.first(n);
      rest = rest.subspan(n);
      return piece;
    };
    for (size_t k = 0; k < first.num_segments(); ++k) {
      ones.append(take(first[k].size));
      others.append(take(second[k].size));
    }
    ones.append(others);
    return ones;
  }

 private:
  Segment in_second(size_t k) const {
    return {second[k].name, first.size() + second[k].begin, second[k].size};
  }
};

// Where the operands of a loop over slices (OpDef::loop) stand, and its results.
struct LoopSegments : Loop {
  size_t num_xs, num_ys;
  LoopLayout in, out;

  explicit LoopSegments(Loop loop)
      : Loop(std::move(loop)),
        num_xs(body->num_inputs() - num_consts - num_carry),
        num_ys(body->outputs().size() - num_carry),
        in{{"consts", num_consts}, {"carry", num_carry}, {"xs", num_xs}},
        out{{"carry", num_carry}, {"ys", num_ys}} {}
};
// Its operands.
struct LoopOperands {
  Vals consts, carry, xs;

  LoopOperands() = default;
  LoopOperands(const Vals& all, const LoopLayout& in)
      : consts(in[0].of(all)), carry(in[1].of(all)), xs(in[2].of(all)) {}
  LoopOperands(const RuleCtx& c, const LoopSegments& loop)
      : LoopOperands(vals_of(c.b, c.operands), loop.in) {}

  Vals all() const { return joined({consts, carry, xs}); }
  // Of the body's inputs.
  TypeRefs body_types() const {
    TypeRefs types = types_of(joined({consts, carry}));
    for (const Val& v : xs) {
      Dims shape = v.shape();
      shape.erase(0);
      types.push_back(with_shape(v.type(), shape));
    }
    return types;
  }
};

// The loop with another body and other operands; `like` has its other attributes.
inline Vals apply_loop(const RuleCtx& c, const AttrsRef& like, const GraphRef& body,
                       const LoopOperands& x) {
  AttrsRef attrs = c.op.loop.with(like, {body, x.consts.size(), x.carry.size()});
  return vals_of(c.b, c.b.add(c.op, values_of(x.all()), attrs));
}
inline Vals apply_loop(const RuleCtx& c, const GraphRef& body, const LoopOperands& x) {
  return apply_loop(c, c.attrs, body, x);
}

// A graph that takes and gives one list after the other, as one that takes and gives both zipped.
inline GraphRef zipped(const GraphRef& graph, const Zipped& in, const Zipped& out) {
  return make_graph(in.zip(TypeRefs(graph->input_types())),
                    [&](Builder& b, std::span<const Val> xs) {
                      return out.zip(inlined(b, graph, in.unzip(Vals(xs))));
                    });
}

// A loop's body turns carries into carries, so what holds of a carry that goes in must hold of the
// one that comes out. transform(inputs) transforms the body for inputs of which the mask holds, and
// returns something whose mask, out(result), says of which outputs it holds afterwards; carries
// come out first. As the mask comes from flowed(), there is rarely a second round.
template <typename Transform, typename Out>
auto carry_fixpoint(Mask& inputs, const Segment& carry, Transform&& transform, Out&& out) {
  for (;;) {
    auto result = transform(inputs);
    bool grew = false;
    for (size_t i = 0; i < carry.size; ++i) {
      bool& in = inputs[carry.begin + i];
      grew |= out(*result, i) && !in;
      in = in || out(*result, i);
    }
    if (!grew) return result;
  }
}

// What a loop carries of the checks of its graphs: the number of the one that failed, and values.
inline Vals nothing_failed(Builder& b, std::span<const TypeRef> types) {
  Vals out;
  for (TypeRef type : types)
    out.push_back(out.empty()
                      ? Val{&b, b.literal(make_literal(type->dtype(), int64_t{kNothingFailed}))}
                      : zeros(b, type));
  return out;
}
// What an iteration found, unless something had failed before.
inline Vals first_failed(const Vals& before, std::span<const Val> now) {
  Val none = scalar_like(before[0], kNothingFailed);
  Val is_first = eq(before[0], none);
  Vals out;
  for (size_t i = 0; i < before.size(); ++i) out.push_back(select(is_first, now[i], before[i]));
  return out;
}
// The types of what a checked graph gives for its checks.
inline TypeRefs failure_types(const CheckedGraph& graph) {
  std::vector<TypeRef> types = graph.graph->output_types();
  return TypeRefs(std::span<const TypeRef>(types).subspan(graph.num_outputs));
}

// Tangents of the operands for which the mask holds; a carry that starts without one has zeros, or,
// where graphs are only split, its value.
inline Values instantiated_tangents(const GraphJvpCtx& c, const Mask& mask) {
  Values out;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (!mask[i]) continue;
    if (c.tangents[i]) {
      out.push_back(c.tangents[i]);
    } else {
      out.push_back(c.transforms->only_splits() ? c.operands[i] : zeros(c.b, c.in_types[i]).value);
    }
  }
  return out;
}

// The constants that the graphs of a loop hold become operands, in front of the segment of the
// graph that held them.
struct LiftedGraphs {
  std::vector<GraphRef> graphs;
  std::vector<size_t> num_consts;  // of each graph now
  std::vector<std::pair<size_t, ObjectRef>> operands;
};
// Graph k has the constants of segment k.
inline LiftedGraphs lift_graphs(const LoopLayout& operands, std::span<const GraphRef> graphs) {
  LiftedGraphs out;
  for (size_t k = 0; k < graphs.size(); ++k) {
    auto inner = lift_constants(graphs[k]);
    out.graphs.push_back(inner->graph);
    out.num_consts.push_back(operands[k].size + inner->constants.size());
    for (const ObjectRef& object : inner->constants)
      out.operands.push_back({operands[k].begin, object});
  }
  return out;
}

// A while whose condition looks at the carry alone; the body takes the constants, then the carry.
Vals while_loop(Builder& b, const GraphRef& condition, const GraphRef& body, const Vals& consts,
                const Vals& carry);

}  // namespace weft
