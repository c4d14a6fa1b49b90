// A function recorded at a point: the first half of every un-jitted transform.
#pragma once

#include <string>
#include <vector>

#include "graphs/recording.h"
#include "jit/tree_memo.h"
#include "references/core.h"

namespace weft::py {

struct Function {
  PyObject* object;
  PyObject* name;      // str
  bool has_aux;        // returns (value, aux)
  PyObject* describe;  // from the number of a leaf of the point to its name
};

// The arguments of a call; the function is recorded as one of the leaves of those at `positions`.
struct CallArguments {
  PyObject* args;    // tuple
  PyObject* kwargs;  // dict, or null
  std::vector<Py_ssize_t> positions;
};
CallArguments all_arguments(PyObject* args);
// `positions` is a tuple of ints.
CallArguments arguments_of(PyObject* args, PyObject* kwargs, PyObject* positions);

// A leaf or result as a type, without a value.
struct Slot {
  TypeRef type;
  bool weak;
  bool is_linear = false;    // in or from a function that is linear in integers, too
  bool is_argument = false;  // of a value: it is an argument of the function, untouched

  bool has_tangent() const { return is_linear || is_inexact(type->dtype()); }
};

struct Point {
  std::vector<Tree> trees;  // of the arguments at the positions
  Leaves leaves;            // of all of them
  Mask chosen;              // per leaf: whether it is an input of the graph
  bool is_differentiated = false;
  std::vector<Operand> inputs;
  // Its outputs are the leaves of the value, those of aux, and what cells hold: those among the
  // chosen leaves that were written, at these places, and those of outside.
  Recording recorded;
  std::vector<size_t> written;
  std::vector<Ref> cell_values;  // of the cells among the leaves, which the operands refer to
  Tree value;
  std::optional<Tree> aux;
  // Per leaf of the value, then of aux: what the function returned, if that is no array; or null.
  std::vector<Ref> returned;

  // A mask over the graph's inputs: the leaves, and not what the function closed over.
  Mask mask() const;
  std::vector<Operand> graph_operands() const;
  std::vector<Slot> leaf_slots() const;
  std::vector<Slot> value_slots() const;
  // Puts what is no array in the place of the results that are just that: numbers that the function
  // returns, and those among its inputs, as they came. With `wide` also what has more bits than the
  // result; reverse mode has values of the types that their cotangents have.
  void keep_given(const Graph& graph, std::span<const Operand> xs, std::span<Ref> results,
                  bool wide) const;
  // The value, and the second of the pair that the function returned (None without aux), from the
  // graph's results.
  Ref value_of(std::span<const Ref> results) const;
  Ref aux_of(std::span<const Ref> results) const;
  // Writes cells, from the graph's results.
  void write_cells(std::span<const Ref> results) const;
};

// Takes the arguments apart.
Point point_at(const CallArguments& arguments);
// Likewise, for a derivative: raises for a leaf that is no array or number, and chooses those that
// can have one.
Point differentiable_point(const CallArguments& arguments, const Function& f);
// The name of a leaf in messages.
Ref describe_leaf(const Function& f, size_t i);
// Lets cells among the leaves take part with their values; raises for one that is there twice.
void read_cells(Point& point, const Function& f);
// Raises if a derivative would have to go through a cell of outside: if the output that holds its
// last value has a tangent.
void check_cells(const Point& point, const Function& f, const Mask& out_mask);
// A cell of outside that backward rules of the recorded function get: which capture and which
// output hold its trail.
struct BackwardCell {
  Ref cell;
  size_t input, output;
};
// By input; those whose trails begin at `mask`, which they are added to.
std::vector<BackwardCell> backward_cells(const Point& point, Mask& mask);
// The operands that are cotangents of trails: what the cells hold now.
void append_cells(std::span<const BackwardCell> cells, const Mask& out_mask,
                  std::vector<Ref>& owned, std::vector<Operand>& operands);
// Takes the cotangents of the trails, which come first, out of the results of a backward pass, and
// writes them to the cells.
void write_back(std::span<const BackwardCell> cells, const Mask& out_mask,
                std::vector<Ref>& results);
// Raises if a leaf is no array or number.
void check_leaf(const Point& point, const Function& f, size_t i);
void check_leaves(const Point& point, const Function& f);
// Records the function with the leaves in `point.chosen` as inputs, mapped along `axes` (one per
// input; empty where nothing is mapped). `fixed` as for record().
void record_at(Point& point, const Function& f, const CallArguments& arguments,
               std::span<const std::optional<int64_t>> axes = {}, std::string_view fixed = {});

// A tuple of trees from all their leaves: the next of `found` for those that are chosen,
// other(leaf number) for the rest.
Ref assemble(std::span<const Tree> trees, const Mask& chosen, std::span<PyObject* const> found,
             FunctionRef<Ref(size_t)> other);

// Tangents or cotangents, in the dtypes of what they belong to.
struct Directions {
  std::vector<Ref> owned;
  std::vector<Operand> operands;

  // Whether nothing among them would make a strong type of a weak one.
  bool are_weak() const;
};
// Of results that are inputs of their graph: those that are no arrays, as they came. `wide` as for
// Point::keep_given(); `as_came` is per result, as that of Recording.
void keep_inputs(const Graph& graph, std::span<const Operand> xs, std::span<Ref> results,
                 const std::vector<bool>& as_came, bool wide = true);
// Those of `slots` that are inexact, from a tree's leaves or from a tuple of `trees`. `describe`
// names a slot, `transform` who asks, in the error that one which does not fit raises.
Directions directions(std::span<const Slot> slots, const Leaves& given,
                      FunctionRef<Ref(size_t)> describe, const char* transform);
Directions tangents_of(std::span<const Tree> trees, std::span<const Slot> slots, PyObject* tuple,
                       FunctionRef<Ref(size_t)> describe, const char* transform);
// Raises for trees (definitions) that differ; `what` are of the second one.
[[noreturn]] void reject_structure(const Ref& expected, const Ref& given, const char* transform,
                                   const char* what);
// The zero of a tangent of that type: of dtype float0 for integers and bools.
Ref zero_tangent(TypeRef type);

}  // namespace weft::py
