// What stands after the name of an op: the generic form, and the pretty ones.
#include <algorithm>

#include "read/reader.h"

namespace weft::reader {

void Reader::read_attributes(Cursor& in, OpText& op) {
  for (const Named& attr : document_.fields(in.group())) op.attrs.push_back(attr);
}

void Reader::read_signature(Cursor& in, OpText& op, size_t num_results) {
  TypeRefs types = document_.types(in);
  if (in.accept("->")) {
    if (types.size() != op.size())
      op.fail("expected the types of ", op.size(), " operands; got ", types.size());
    for (size_t i = 0; i < types.size(); ++i) {
      if (types[i] == op.in_type(i)) continue;
      auto text = [](TypeRef type) { return type == kToken ? std::string("a token") : cat(type); };
      op.fail("expected operand ", i, " to be ", text(types[i]), " as its type says; got ",
              text(op.in_type(i)));
    }
    op.types = document_.types(in);
  } else if (types.size() == num_results) {
    op.types = types;
  } else if (num_results == 1 && !types.empty()) {
    op.types = {types.back()};
  } else if (num_results > 0) {
    op.fail("expected the types of ", num_results, " results; got ", types.size());
  }
}

void Reader::read_generic(Cursor& in, Frame& frame, OpText& op) {
  in.expect("(", "before operands");
  while (!in.accept(')')) {
    if (!op.operands.empty()) in.expect(",", "between operands");
    op.operands.push_back(read_operand(in, frame));
  }
  if (in.accept('<')) {
    if (in.peek() != '{') in.fail_expected("\"{\" to begin properties");
    read_attributes(in, op);
    in.expect(">", "after properties");
  }
  if (in.accept('(')) {
    do { op.regions.push_back(read_region(in, &frame, {}, {})); } while (in.accept(','));
    in.expect(")", "after regions");
  }
  if (in.peek() == '{') read_attributes(in, op);
}

// The forms differ, and what stands in them says what it is: operands begin with %, attributes are
// name = value, {...} holds more of those.
void Reader::read_pretty(Cursor& in, Frame& frame, OpText& op) {
  if (op.name == "constant") return read_constant(in, op);
  if (op.name == "while") return read_while(in, frame, op);
  if (op.name == "reduce") return read_reduce(in, frame, op);
  for (;;) {
    char c = in.peek();
    switch (c) {
      case '%':
        op.operands.push_back(read_operand(in, frame));
        continue;
      case ',':
      case '(':
      case ')':
        in.accept(c);
        continue;
      case '{':
        read_attributes(in, op);
        continue;
      case '@': {
        const char* begin = in.position();
        in.accept('@');
        in.name();
        op.attrs.push_back({"callee", in.since(begin)});
        continue;
      }
      case '"':
      case '[':
      case '<':
        op.attrs.push_back({c == '"' ? "name" : c == '[' ? "ranges" : "body", in.value()});
        continue;
      case ':':
      case '}':
      case '\0':
        return;
      default:
        break;
    }
    // "return" without operands, the last one of a function without results, is followed by this.
    if (in.rest().starts_with("loc(")) return;
    std::string_view word = in.word();
    if (word.empty()) in.fail_expected(cat("operands, attributes or a type of ", op.full_name));
    if (!in.accept('=')) {
      if (word == "attributes" && in.peek() == '{') continue;
      op.words.push_back(word);
      continue;
    }
    in.skip_space();
    const char* begin = in.position();
    in.value();
    // [0] x [1], [b, f, 0]x[o, i, 0]->[b, f, 0]
    for (;;) {
      const char* end = in.position();
      bool joined = in.accept('x') || in.accept("->");
      if (joined && in.peek() == '[') {
        in.group();
        continue;
      }
      in.seek(end);
      break;
    }
    op.attrs.push_back({word, in.since(begin)});
  }
}

void Reader::read_constant(Cursor& in, OpText& op) {
  if (in.peek() == '{') read_attributes(in, op);
  op.attrs.push_back({"value", in.value()});
}

void Reader::read_while(Cursor& in, Frame& frame, OpText& op) {
  std::vector<std::string_view> names;
  in.expect("(", "before the values that a while carries");
  while (!in.accept(')')) {
    if (!names.empty()) in.expect(",", "between the values that a while carries");
    in.expect("%", "to begin the name of a value that a while carries");
    names.push_back(in.name());
    in.expect("=", "after the name of a value that a while carries");
    op.operands.push_back(read_operand(in, frame));
  }
  if (in.accept(':')) {
    op.types = names.empty() ? TypeRefs() : document_.types(in);
    for (size_t i = 0; i < op.size(); ++i)
      if (op.types.size() != op.size() || op.types[i] != op.in_type(i))
        op.fail("expected the types of the values that it carries");
  }
  if (in.accept_word("attributes")) read_attributes(in, op);
  in.expect("cond", "before the condition of a while");
  in.skip_space();
  op.regions.push_back(read_region(in, &frame, names, op.types));
  in.expect("do", "before the body of a while");
  in.skip_space();
  op.regions.push_back(read_region(in, &frame, names, op.types));
}

// stablehlo.reduce(%x init: %c), (%y init: %d) applies stablehlo.add across dimensions = [0] : ...
// or, in place of the name of an op, "reducer(%a: t, %b: t) (%c: t, %d: t) { ... }" after the type.
void Reader::read_reduce(Cursor& in, Frame& frame, OpText& op) {
  Entries inits;
  do {
    in.expect("(", "before an operand of a reduce");
    op.operands.push_back(read_operand(in, frame));
    in.expect("init", "before an initial value");
    in.expect(":", "before an initial value");
    inits.push_back(read_operand(in, frame));
    in.expect(")", "after an initial value");
  } while (in.accept(','));
  op.operands.append(inits);
  if (in.accept_word("applies")) {
    std::string_view applied = in.word();
    op.attrs.push_back({"applies", applied.substr(applied.find('.') + 1)});
  }
  in.expect("across", "before the dimensions of a reduce");
  in.expect("dimensions", "of a reduce");
  in.expect("=", "after dimensions");
  op.attrs.push_back({"dimensions", in.value()});
  if (in.peek() == '{') read_attributes(in, op);
  in.expect(":", "before the type of a reduce");
  read_signature(in, op, inits.size());
  if (!in.accept_word("reducer")) return;
  std::vector<std::string_view> first, second;
  TypeRefs first_types, second_types;
  while (in.peek() == '(') {
    std::vector<std::string_view> names;
    TypeRefs types;
    read_block_arguments(in, names, types);
    if (names.size() != 2) op.fail("expected pairs of arguments of its reducer");
    first.push_back(names[0]);
    second.push_back(names[1]);
    first_types.push_back(types[0]);
    second_types.push_back(types[1]);
  }
  first.insert(first.end(), second.begin(), second.end());
  first_types.append(second_types);
  op.regions.push_back(read_region(in, &frame, first, first_types));
}

}  // namespace weft::reader
