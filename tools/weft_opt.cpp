// weft-opt: runs transforms and passes on a program in text form and prints the result. Used by
// tests/ir, and by anyone who wants to see what the compiler makes of a program.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "weft/extension.h"
#include "weft/weft.h"

namespace {

constexpr int kUsageError = 2;

const char kUsage[] =
    R"(usage: weft-opt [options] [file]
Reads a program (from the file, or from stdin), runs transforms, then passes on it, and prints it.
The program is one in text form, as this prints it, or a module of StableHLO.

  --jvp=MASK          values and tangents; MASK says which inputs have one: 1,0,1
  --vjp=MASK          values and cotangents of the inputs in MASK
  --forward=MASK      the forward graph of linearize: values, then residuals
  --linear=MASK       its linear graph: residuals and tangents to tangents
  --transpose=MASK    transpose of a program that is linear in the inputs in MASK
  --grad=INPUTS       gradients of a scalar output with respect to the inputs numbered: 0,2
  --jacfwd=MASK       the Jacobian by the inputs in MASK, a column per element of theirs
  --jacrev=MASK       the same, a row per element of the outputs
  --vmap=SIZE:AXES    all elements of a mapped axis at once; AXES has one per input: 0,-,1
  --passes=a,b,c      passes to run, in this order
  --default           run the default pipeline
  --only=a,b          rewrites to use; others are off
  --disable=a,b       rewrites not to use
  --verify            check every invariant of the graph after reading and after each pass
  --emit=FORM         graph (the default) or stablehlo; portable or iree: StableHLO for other
                      compilers than XLA
  --platform=NAME     platform to emit for: cpu (the default), cuda, tpu
  --locations         emit or print source locations
  --stats             ops, time and rewrites of each pass, on stderr
  --pass-timing       time of each pass, summed up over its runs, and of all, on stderr
  --print-after-all   the program after each pass that changed it, on stderr
  --reduce=COMMAND    take ops, inputs and outputs away from the result as long as COMMAND FILE,
                      run by the shell, exits with status 0; FILE has a program as it is printed
  --bisect=COMMAND    which application of a rewrite by the passes changes whether COMMAND FILE
                      exits with status 0, and the programs before and after it
  --load=PATH         passes and ops of a shared library (weft/extension.h)
  --report            what one run of the result takes, on stderr
  --fusions           what each fusion of the result costs, on stderr
  --list-passes       list the passes
  --list-rewrites     list the rewrites: name, op, rule
  --list-ops          list the ops: name, description, rules that are missing
)";

struct Options {
  std::vector<std::function<weft::GraphRef(const weft::GraphRef&)>> transforms;
  std::vector<std::string> passes;
  weft::PassOptions pass_options;
  weft::EmitOptions emit_options;
  std::string form = "graph";
  std::string file;
  std::string reduce, bisect;  // commands
  bool verify = false;
  bool locations = false;
  bool stats = false;
  bool pass_timing = false;
  bool report = false;
  bool fusions = false;
  std::function<void()> list;  // set by the --list options: print that and nothing else
};

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t comma = text.find(',');
    if (comma != 0) parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return parts;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

weft::Mask parse_mask(std::string_view text) {
  weft::Mask mask;
  for (const std::string& part : split(text)) {
    if (part != "0" && part != "1")
      weft::fail(weft::ErrorKind::kValue, "expected a mask such as 1,0,1; got ", text);
    mask.push_back(part == "1");
  }
  return mask;
}

std::vector<uint32_t> parse_inputs(std::string_view text) {
  std::vector<uint32_t> inputs;
  for (const std::string& part : split(text)) {
    uint32_t input = 0;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), input);
    if (error != std::errc() || end != part.data() + part.size())
      weft::fail(weft::ErrorKind::kValue, "expected numbers of inputs such as 0,2; got ", text);
    inputs.push_back(input);
  }
  return inputs;
}

weft::VmapOptions parse_vmap(std::string_view text) {
  weft::VmapOptions options;
  size_t colon = text.find(':');
  try {
    options.size = std::stoll(std::string(text.substr(0, colon)));
    for (const std::string& part : split(text.substr(colon + 1)))
      options.in_dims.push_back(part == "-" ? weft::kNotBatched : std::stoi(part));
  } catch (const std::exception&) {
    weft::fail(weft::ErrorKind::kValue, "expected SIZE:AXES such as 8:0,-,1; got ", text);
  }
  return options;
}

weft::GraphRef transposed(const weft::GraphRef& graph, const weft::Mask& linear) {
  weft::Mask all(graph->outputs().size(), true);
  return weft::transpose(graph, {.linear = linear, .cotangents = all, .instantiate = true})->graph;
}

void print_after(std::string_view pass, const weft::Graph& before, const weft::Graph& after) {
  if (&before == &after) return;
  std::fprintf(stderr, "// after %s\n%s\n", std::string(pass).c_str(), weft::print(after).c_str());
}

void list_passes() {
  for (const weft::Pass& pass : weft::all_passes()) {
    std::cout << pass.name << "  " << pass.doc << '\n';
  }
  std::cout << "default:";
  for (const std::string& name : weft::default_pipeline()) std::cout << ' ' << name;
  std::cout << '\n';
}

void list_rewrites() {
  for (const weft::RewriteInfo& r : weft::all_rewrites()) {
    std::cout << r.name << "  " << (r.op.empty() ? "-" : r.op) << "  " << r.rule << '\n';
  }
}

void list_ops() {
  for (const weft::OpDef* op : weft::registry().all()) {
    std::cout << op->name << "  " << op->doc;
    std::vector<std::string> missing = op->missing_rules();
    for (size_t i = 0; i < missing.size(); ++i) {
      std::cout << (i ? " " : "  [no: ") << missing[i] << (i + 1 == missing.size() ? "]" : "");
    }
    std::cout << '\n';
  }
}

std::function<weft::GraphRef(const weft::GraphRef&)> jacobian(std::string_view mask, bool forward) {
  return [in_mask = parse_mask(mask), forward](const weft::GraphRef& g) {
    return weft::jacobian(g, {in_mask, g->outputs().size(), forward})->graph;
  };
}

// Every option: with "=" at its end it takes a value.
struct Flag {
  std::string_view name;
  std::function<void(Options&, std::string_view value)> set;
};

const std::vector<Flag>& flags() {
  static const std::vector<Flag> all = {
      {"--jvp=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back(
             [mask = parse_mask(v)](auto& g) { return weft::jvp(g, {.in_mask = mask})->graph; });
       }},
      {"--vjp=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back(
             [mask = parse_mask(v)](auto& g) { return weft::vjp(g, {.in_mask = mask})->graph; });
       }},
      {"--forward=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back([mask = parse_mask(v)](auto& g) {
           return weft::linearize(g, {.in_mask = mask})->forward;
         });
       }},
      {"--linear=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back([mask = parse_mask(v)](auto& g) {
           return weft::linearize(g, {.in_mask = mask})->linear;
         });
       }},
      {"--transpose=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back([mask = parse_mask(v)](auto& g) { return transposed(g, mask); });
       }},
      {"--grad=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back(
             [inputs = parse_inputs(v)](auto& g) { return weft::grad(g, inputs); });
       }},
      {"--jacfwd=",
       [](Options& o, std::string_view v) { o.transforms.push_back(jacobian(v, true)); }},
      {"--jacrev=",
       [](Options& o, std::string_view v) { o.transforms.push_back(jacobian(v, false)); }},
      {"--vmap=",
       [](Options& o, std::string_view v) {
         o.transforms.push_back(
             [options = parse_vmap(v)](auto& g) { return weft::vmap(g, options)->graph; });
       }},
      {"--passes=", [](Options& o, std::string_view v) { append(o.passes, split(v)); }},
      {"--default",
       [](Options& o, std::string_view) { append(o.passes, weft::default_pipeline()); }},
      {"--only=",
       [](Options& o, std::string_view v) { append(o.pass_options.only_rewrites, split(v)); }},
      {"--disable=",
       [](Options& o, std::string_view v) { append(o.pass_options.disabled_rewrites, split(v)); }},
      {"--verify", [](Options& o, std::string_view) { o.verify = true; }},
      {"--emit=", [](Options& o, std::string_view v) { o.form = v; }},
      {"--platform=", [](Options& o, std::string_view v) { o.emit_options.platform = v; }},
      {"--locations", [](Options& o, std::string_view) { o.locations = true; }},
      {"--stats", [](Options& o, std::string_view) { o.stats = true; }},
      {"--pass-timing", [](Options& o, std::string_view) { o.pass_timing = true; }},
      {"--print-after-all",
       [](Options& o, std::string_view) { o.pass_options.dump = print_after; }},
      {"--reduce=", [](Options& o, std::string_view v) { o.reduce = v; }},
      {"--bisect=", [](Options& o, std::string_view v) { o.bisect = v; }},
      {"--load=", [](Options&, std::string_view v) { weft::load_extension(std::string(v)); }},
      {"--report", [](Options& o, std::string_view) { o.report = true; }},
      {"--fusions", [](Options& o, std::string_view) { o.fusions = true; }},
      {"--list-passes", [](Options& o, std::string_view) { o.list = list_passes; }},
      {"--list-rewrites", [](Options& o, std::string_view) { o.list = list_rewrites; }},
      {"--list-ops", [](Options& o, std::string_view) { o.list = list_ops; }},
      {"--help", [](Options& o, std::string_view) { o.list = [] { std::cout << kUsage; }; }},
  };
  return all;
}

void parse_argument(std::string_view arg, Options& options) {
  for (const Flag& flag : flags()) {
    bool takes_value = flag.name.back() == '=';
    if (takes_value ? arg.substr(0, flag.name.size()) == flag.name : arg == flag.name) {
      flag.set(options, takes_value ? arg.substr(flag.name.size()) : std::string_view());
      return;
    }
  }
  if (arg.substr(0, 2) == "--" || !options.file.empty()) {
    weft::fail(weft::ErrorKind::kValue, "unexpected argument ", arg, "\n", kUsage);
  }
  options.file = arg;
}

std::string read_all(std::istream& in) {
  std::string text;
  char block[1 << 16];
  while (in.read(block, sizeof block), in.gcount() > 0)
    text.append(block, static_cast<size_t>(in.gcount()));
  return text;
}

std::string read_input(const std::string& file) {
  if (file.empty()) return read_all(std::cin);
  std::ifstream in(file, std::ios::binary);
  if (!in) weft::fail(weft::ErrorKind::kValue, "expected a readable file; got ", file);
  return read_all(in);
}

void print_stats(const std::vector<weft::PassStats>& all) {
  for (const weft::PassStats& s : all) {
    std::fprintf(stderr, "%-14s %8u -> %8u ops %10.3f ms\n", s.pass.c_str(), s.ops_before,
                 s.ops_after, s.seconds * 1e3);
    for (const auto& [name, count] : s.rewrites) {
      std::fprintf(stderr, "  %8u  %s\n", count, name.c_str());
    }
  }
}

// Slowest first.
void print_timing(const std::vector<weft::PassStats>& all) {
  std::vector<weft::PassStats> passes;
  double total = 0;
  for (const weft::PassStats& s : all) {
    total += s.seconds;
    auto same = [&](const weft::PassStats& known) { return known.pass == s.pass; };
    auto at = std::find_if(passes.begin(), passes.end(), same);
    if (at == passes.end()) {
      passes.push_back(s);
    } else {
      at->seconds += s.seconds;
    }
  }
  std::stable_sort(passes.begin(), passes.end(),
                   [](const auto& x, const auto& y) { return x.seconds > y.seconds; });
  for (const weft::PassStats& s : passes) {
    double share = total > 0 ? 100 * s.seconds / total : 0;
    std::fprintf(stderr, "%-14s %10.3f ms %5.1f %%\n", s.pass.c_str(), s.seconds * 1e3, share);
  }
  std::fprintf(stderr, "%-14s %10.3f ms\n", "total", total * 1e3);
}

void print_fusions(const weft::Graph& graph) {
  for (const weft::FusionReport& f : weft::fusion_report(graph)) {
    std::fprintf(stderr, "%s: %u ops, flops %.0f, transcendentals %.0f, bytes %.0f -> %.0f\n",
                 f.name.c_str(), f.num_ops, f.cost.flops, f.cost.transcendentals, f.cost.bytes,
                 f.fused_bytes);
  }
}

// As it is printed, and as commands get it.
std::string text_of(const weft::Graph& graph, const Options& options) {
  if (options.form == "graph") return weft::print(graph, {.locations = options.locations}) + '\n';
  return weft::emit_stablehlo(graph, options.emit_options).text;
}

// Whether a command of the user's exits with status 0 when it is run on a program.
class CommandTest {
 public:
  CommandTest(std::string command, const Options& options)
      : command_(std::move(command)), options_(options) {
    std::string name = (std::filesystem::temp_directory_path() / "weft-opt-XXXXXX").string();
    if (!mkdtemp(name.data()))
      weft::fail(weft::ErrorKind::kValue, "expected a folder for files; cannot make ", name);
    folder_ = name;
  }
  CommandTest(const CommandTest&) = delete;
  CommandTest& operator=(const CommandTest&) = delete;
  ~CommandTest() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  bool operator()(const weft::Graph& graph) const {
    std::string text;
    try {
      text = text_of(graph, options_);
    } catch (const weft::Error&) { return false; }  // a program that is not emitted
    auto file = folder_ / (options_.form == "graph" ? "program.ir" : "program.mlir");
    std::ofstream(file, std::ios::binary) << text;
    int status = std::system((command_ + " '" + file.string() + "'").c_str());
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    constexpr int kNotExecutable = 126, kNotFound = 127, kInterrupted = 128 + SIGINT;
    if (code == kNotExecutable || code == kNotFound)
      weft::fail(weft::ErrorKind::kValue, "expected a command that can be run; got ", command_);
    if (code == kInterrupted) weft::fail(weft::ErrorKind::kValue, command_, " was interrupted");
    return code == 0;
  }

 private:
  std::string command_;
  const Options& options_;
  std::filesystem::path folder_;
};

weft::GraphRef reduced(const weft::GraphRef& graph, const Options& options) {
  CommandTest test(options.reduce, options);
  weft::Shrunk shrunk = weft::shrink(graph, std::cref(test));
  std::fprintf(stderr, "%zu ops, %zu after %u runs of the command\n", graph->ops().size(),
               shrunk.graph->ops().size(), shrunk.num_tests);
  return shrunk.graph;
}

void print_bisection(const weft::GraphRef& graph, const Options& options) {
  CommandTest test(options.bisect, options);
  weft::Bisection found =
      weft::bisect(graph, options.passes, options.pass_options, std::cref(test));
  std::cout << "pass " << found.pass;
  if (found.application == 0) {
    std::cout << ", besides its rewrites\n";
  } else {
    std::cout << ", application " << found.application << " of " << found.num_applications << ":";
    for (const weft::AppliedRewrite& rewrite : found.rewrites) {
      std::cout << ' ' << rewrite.name;
      if (rewrite.loc != weft::kNoLoc) std::cout << " at " << weft::loc_text(rewrite.loc);
    }
    std::cout << '\n';
  }
  std::cout << "// before\n" << text_of(*found.before, options);
  std::cout << "// after\n" << text_of(*found.after, options);
}

void run(Options& options) {
  if (options.form == "portable" || options.form == "iree") {
    options.emit_options.platform = options.form;
  } else if (options.form != "graph" && options.form != "stablehlo") {
    weft::fail(weft::ErrorKind::kValue, "expected --emit=graph, stablehlo, portable or iree; got ",
               options.form);
  }
  std::string text = read_input(options.file);
  weft::GraphRef graph =
      weft::is_mlir(text) ? weft::read_stablehlo(text, {.file = options.file}) : weft::parse(text);
  if (options.verify) weft::verify(*graph);
  for (const auto& transform : options.transforms) {
    graph = transform(graph);
    if (options.verify) weft::verify(*graph);
  }
  options.pass_options.verify = options.verify;
  options.emit_options.locations = options.locations;
  if (!options.bisect.empty()) return print_bisection(graph, options);
  std::vector<weft::PassStats> stats;
  graph = weft::run_passes(graph, options.passes, options.pass_options, &stats);
  if (!options.reduce.empty()) graph = reduced(graph, options);
  std::cout << text_of(*graph, options);
  if (options.stats) print_stats(stats);
  if (options.pass_timing) print_timing(stats);
  if (options.report) std::cerr << weft::to_text(weft::analyze(*graph));
  if (options.fusions) print_fusions(*graph);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    for (int i = 1; i < argc; ++i) parse_argument(argv[i], options);
    if (options.list) {
      options.list();
    } else {
      run(options);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "weft-opt: " << error.what() << '\n';
    return kUsageError;
  }
}
