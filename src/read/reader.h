// From text to a graph. Ops are read one after the other and become ops of the graph at once; no
// tree of the text is kept. Regions and functions become graphs of their own.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "read/document.h"
#include "read/op_text.h"
#include "weft/builder.h"
#include "weft/read.h"

namespace weft::reader {

// The values that are known by name in one region or function, and its graph as far as it is read.
class Frame {
 public:
  explicit Frame(Frame* outer) : outer_(outer) {}

  GraphBuilder b;

  // Of "3", "arg0" or "3#1"; nullopt: there is no such value here or outside.
  std::optional<Entry> find(std::string_view name);
  // False if there is one of this name in this frame.
  bool define(std::string_view name, std::span<const Entry> values);
  // What was taken from outside, and the inputs that stand for it.
  const Entries& captured() const { return captured_; }
  std::span<const Value> captured_inputs() const { return inputs_; }

 private:
  struct Definition {
    std::string_view name;
    uint32_t first, count;
  };
  uint32_t index_of(std::string_view name, uint64_t hash) const;

  Frame* outer_;
  IndexTable index_;
  std::vector<Definition> definitions_;
  std::vector<Entry> values_;
  Entries captured_;
  std::vector<Value> inputs_;
};

class Reader {
 public:
  Reader(std::string_view text, const ReadOptions& options)
      : options_(options), document_(text, options.file) {}

  GraphRef read();
  // The graph of a function of the module, read when it is first asked for.
  const GraphRef& function(std::string_view name, const OpText& user);

 private:
  struct Function {
    const char* at;         // where "func.func" stands
    std::string_view text;  // what follows, up to the end of the body
    bool is_public = true;
    GraphRef graph = nullptr;
    bool in_progress = false;
  };
  // How deep regions, functions and their parts are in each other.
  class Level;

  void find_functions();
  void skip_op(Cursor& in);
  void find_function(Cursor& in, const char* at, bool generic);
  const Function& main_function() const;
  GraphRef read_function(const Function& f);

  Region read_region(Cursor& in, Frame* outer, std::span<const std::string_view> names,
                     std::span<const TypeRef> types);
  void read_block_arguments(Cursor& in, std::vector<std::string_view>& names, TypeRefs& types);
  // Up to the op that ends the block, whose operands are the outputs.
  GraphRef read_block(Cursor& in, Frame& frame, Region& region);

  void read_op(Cursor& in, Frame& frame, Entries& returned, bool& done);
  void read_generic(Cursor& in, Frame& frame, OpText& op);
  void read_pretty(Cursor& in, Frame& frame, OpText& op);
  void read_constant(Cursor& in, OpText& op);
  void read_while(Cursor& in, Frame& frame, OpText& op);
  void read_reduce(Cursor& in, Frame& frame, OpText& op);
  void read_signature(Cursor& in, OpText& op, size_t num_results);
  void read_attributes(Cursor& in, OpText& op);
  Entry read_operand(Cursor& in, Frame& frame);
  void apply(OpText& op, Frame& frame);

  ReadOptions options_;
  Document document_;
  std::unordered_map<std::string_view, Function> functions_;
  int depth_ = 0;
};

}  // namespace weft::reader
