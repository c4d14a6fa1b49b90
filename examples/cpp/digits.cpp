// Trains a network of two layers on pictures of digits, in C++ without Python;
// examples/c_api/digits.c is the same in C.
//
//   find_package(weft REQUIRED)
//   target_link_libraries(digits PRIVATE weft::weft-run)
//
//   ./digits plugin.so data.safetensors learnt.safetensors
//
// The data: `images`, f32[N,64], and `labels`, i32[N]; the weights to start from, `w1`, f32[64,H],
// `b1`, f32[H], `w2`, f32[H,10], and `b2`, f32[10]. The last images are kept for the test.
#include <cstdio>
#include <string>
#include <vector>

#include "weft/arrays.h"
#include "weft/session.h"
#include "weft/weft.h"

namespace {

using weft::GraphRef;
using weft::TypeRef;
using weft::Val;

constexpr int64_t kBatch = 100, kTested = 297;
constexpr int kEpochs = 20;
const std::vector<std::string> kWeights = {"w1", "b1", "w2", "b2"};

// As many rows (axis 1) or columns (axis 0) of a vector as `like` has.
Val spread(Val vector, Val like, int64_t axis) {
  return weft::broadcast_in_dim(vector, like.type()->shape(), {axis});
}

Val layer(Val x, Val w, Val bias) {
  Val y = weft::apply1("dot_general", {x, w},
                       {{"dimension_numbers", std::vector<weft::Dims>{{1}, {0}, {}, {}}}});
  return y + spread(bias, y, 1);
}

// A program that is built: its inputs are the weights, images and their labels.
struct Network {
  weft::GraphBuilder b;
  std::vector<Val> weights;
  Val images, labels, out;

  Network(const std::vector<TypeRef>& types, int64_t n) {
    for (TypeRef type : types) weights.push_back({&b, b.input(type)});
    images = {&b, b.input(weft::make_type(weft::DType::kF32, weft::Dims{n, 64}))};
    labels = {&b, b.input(weft::make_type(weft::DType::kI32, weft::Dims{n}))};
    out = layer(weft::tanh(layer(images, weights[0], weights[1])), weights[2], weights[3]);
  }
  GraphRef finish(Val output) { return b.finish({&output.value, 1}); }
};

// The cross entropy of the labels: log(sum(exp(z))) - z[label], on average.
GraphRef loss_graph(const std::vector<TypeRef>& types, int64_t n) {
  Network net(types, n);
  Val z = net.out - spread(weft::reduce_max(net.out, {1}), net.out, 0);
  Val total = weft::log(weft::reduce_sum(weft::exp(z), {1}));
  Val columns = weft::iota(net.b, weft::make_type(weft::DType::kI32, z.type()->shape()), 1);
  Val hot = weft::convert(weft::eq(columns, spread(net.labels, columns, 0)), weft::DType::kF32);
  Val right = weft::reduce_sum(z * hot, {1});
  return net.finish(weft::reduce_sum(total - right, {0}) / static_cast<double>(n));
}

// From weights, images and labels to the loss and better weights: w - rate * gradient.
GraphRef step_graph(const std::vector<TypeRef>& types, int64_t n, double rate) {
  GraphRef gradients = weft::value_and_grad(loss_graph(types, n), {0, 1, 2, 3});
  weft::GraphBuilder b;
  std::vector<weft::Value> arguments;
  for (TypeRef type : gradients->input_types()) arguments.push_back(b.input(type));
  weft::Values results = b.inline_graph(*gradients, arguments);
  for (size_t i = 0; i < types.size(); ++i) {
    Val w{&b, arguments[i]}, gradient{&b, results[1 + i]};
    results[1 + i] = (w - gradient * rate).value;
  }
  return b.finish(results);
}

// How many of n images the network gives their labels.
GraphRef count_graph(const std::vector<TypeRef>& types, int64_t n) {
  Network net(types, n);
  Val guess = weft::apply1("argmax", {net.out},
                           {{"axes", weft::Dims{1}}, {"index_dtype", weft::DType::kI32}});
  Val right = weft::convert(weft::eq(guess, net.labels), weft::DType::kF32);
  return net.finish(weft::reduce_sum(right, {0}));
}

float number(const weft::Buffer& buffer) {
  float x = 0;
  buffer.read(&x, sizeof x);
  return x;
}

void train(const char* plugin, const char* from, const char* to) {
  weft::Session session(plugin);
  std::vector<weft::NamedArray> data = weft::read_arrays(from);
  // Rows of an array of the data, from number `first` on.
  auto rows = [&](const char* name, TypeRef type, int64_t first) {
    const std::vector<char>& bytes = weft::find_array(data, name).bytes;
    auto size = static_cast<size_t>(weft::host_bytes(type));
    size_t offset = size / static_cast<size_t>(type->shape()[0]) * static_cast<size_t>(first);
    if (offset + size > bytes.size()) weft::fail(weft::ErrorKind::kValue, "expected more ", name);
    return session.put(type, bytes.data() + offset, size);
  };
  std::vector<TypeRef> types;
  std::vector<weft::Buffer> weights;
  for (const std::string& name : kWeights) {
    const weft::NamedArray& array = weft::find_array(data, name);
    types.push_back(array.type);
    weights.push_back(session.put(array.type, array.bytes.data(), array.bytes.size()));
  }
  int64_t num_trained = weft::find_array(data, "labels").type->num_elements() - kTested;

  // The weights, then images and labels from number `first` on.
  auto run = [&](const weft::Program& program, int64_t first) {
    weft::Buffer images = rows("images", program.input_types()[4], first);
    weft::Buffer labels = rows("labels", program.input_types()[5], first);
    std::vector<const weft::Buffer*> arguments;
    for (const weft::Buffer& w : weights) arguments.push_back(&w);
    arguments.insert(arguments.end(), {&images, &labels});
    return program.run(arguments);
  };
  weft::Program step = session.compile(step_graph(types, kBatch, 0.5), {.donated = {0, 1, 2, 3}});
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    float loss = 0;
    for (int64_t first = 0; first + kBatch <= num_trained; first += kBatch) {
      std::vector<weft::Buffer> results = run(step, first);
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::move(results[1 + i]);
      loss = number(results[0]);
    }
    if (epoch % 5 == 0) std::printf("epoch %d: loss %.4f\n", epoch, loss);
  }
  weft::Program count = session.compile(count_graph(types, kTested));
  std::printf("accuracy %.4f on %s\n", number(run(count, num_trained)[0]) / kTested,
              session.platform().c_str());

  std::vector<weft::NamedArray> learnt;
  for (size_t i = 0; i < weights.size(); ++i) {
    std::vector<char> bytes(static_cast<size_t>(weft::host_bytes(types[i])));
    weights[i].read(bytes.data(), bytes.size());
    learnt.push_back({kWeights[i], types[i], std::move(bytes)});
  }
  weft::write_arrays(to, learnt);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: digits PLUGIN DATA LEARNT\n");
    return 2;
  }
  try {
    train(argv[1], argv[2], argv[3]);
  } catch (const weft::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
