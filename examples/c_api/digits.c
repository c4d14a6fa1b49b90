/* Trains a network of two layers on pictures of digits, from C alone: the program is built op by
 * op, differentiated, compiled by a PJRT plugin and run.
 *
 *   cc digits.c -I$(python -m weft --include-dir) -L$(python -m weft --lib-dir) -lweft -o digits
 *   ./digits plugin.so data.safetensors learnt.safetensors
 *
 * The data: `images`, f32[N,64], and `labels`, i32[N]; the weights to start from, `w1`, f32[64,H],
 * `b1`, f32[H], `w2`, f32[H,10], and `b2`, f32[10]. The last images are kept for the test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/run.h"

enum { kBatch = 100, kTested = 297, kEpochs = 20, kWeights = 4 };

static void check(weft_error* error) {
  if (!error) return;
  fprintf(stderr, "error %d: %s\n", (int)weft_error_get_kind(error), weft_error_message(error));
  weft_error_free(error);
  exit(1);
}

/* ---- Building ---- */

/* An op with one result. */
static weft_value op1(weft_builder* b, const char* name, weft_value x, const char* attributes) {
  weft_value result;
  check(weft_builder_op(b, weft_text_of(name), &x, 1, weft_text_of(attributes), &result, 1, NULL));
  return result;
}
static weft_value op2(weft_builder* b, const char* name, weft_value x, weft_value y,
                      const char* attributes) {
  weft_value result, operands[2];
  operands[0] = x;
  operands[1] = y;
  check(weft_builder_op(b, weft_text_of(name), operands, 2, weft_text_of(attributes), &result, 1,
                        NULL));
  return result;
}
static weft_value scalar(weft_builder* b, double x) {
  weft_value value;
  check(weft_builder_scalar(b, weft_text_of("f32"), x, &value));
  return value;
}

/* As many rows or columns of a vector as there are of `like`. */
static weft_value spread(weft_builder* b, weft_value vector, weft_value like, int axis) {
  char attributes[100];
  const int64_t* dims = weft_type_dims(weft_builder_type(b, like));
  snprintf(attributes, sizeof attributes, "shape=(%d, %d) broadcast_dimensions=(%d,)", (int)dims[0],
           (int)dims[1], axis);
  return op1(b, "broadcast_in_dim", vector, attributes);
}

static weft_value layer(weft_builder* b, weft_value x, weft_value w, weft_value bias) {
  weft_value y = op2(b, "dot_general", x, w, "dimension_numbers=(([1], [0]), ([], []))");
  return op2(b, "add", y, spread(b, bias, y, 1), "");
}

/* Inputs: the weights, n images and their labels. Gives the last layer's values. */
static weft_value network(weft_builder* b, const weft_type* weights, int n, weft_value* labels) {
  weft_value w[kWeights], images;
  weft_type type;
  int64_t dims[2];
  int i;
  dims[0] = n;
  dims[1] = 64;
  for (i = 0; i < kWeights; ++i) check(weft_builder_input(b, weights[i], &w[i]));
  check(weft_type_make(weft_text_of("f32"), dims, 2, &type));
  check(weft_builder_input(b, type, &images));
  check(weft_type_make(weft_text_of("i32"), dims, 1, &type));
  check(weft_builder_input(b, type, labels));
  return layer(b, op1(b, "tanh", layer(b, images, w[0], w[1]), ""), w[2], w[3]);
}

static weft_graph* finish(weft_builder* b, const weft_value* outputs, size_t num_outputs) {
  weft_graph* graph;
  check(weft_builder_finish(b, outputs, num_outputs, &graph));
  weft_builder_free(b);
  return graph;
}

/* The cross entropy of the labels: log(sum(exp(z))) - z[label], on average. */
static weft_graph* loss_graph(const weft_type* weights, int n) {
  weft_builder* b;
  weft_value labels, z, total, columns, hot, right, loss;
  char attributes[100];
  check(weft_builder_new(&b));
  z = network(b, weights, n, &labels);
  z = op2(b, "sub", z, spread(b, op1(b, "reduce_max", z, "axes=(1,)"), z, 0), "");
  total = op1(b, "log", op1(b, "reduce_sum", op1(b, "exp", z, ""), "axes=(1,)"), "");
  snprintf(attributes, sizeof attributes, "dimension=1 dtype=int32 shape=(%d, 10)", n);
  check(weft_builder_op(b, weft_text_of("iota"), NULL, 0, weft_text_of(attributes), &columns, 1,
                        NULL));
  hot = op2(b, "eq", columns, spread(b, labels, columns, 0), "");
  hot = op1(b, "convert_element_type", hot, "new_dtype=float32");
  right = op1(b, "reduce_sum", op2(b, "mul", z, hot, ""), "axes=(1,)");
  loss = op1(b, "reduce_sum", op2(b, "sub", total, right, ""), "axes=(0,)");
  loss = op2(b, "div", loss, scalar(b, n), "");
  return finish(b, &loss, 1);
}

/* From weights, images and labels to the loss and better weights: w - rate * gradient. */
static weft_graph* step_graph(const weft_type* weights, int n, double rate) {
  weft_graph *loss = loss_graph(weights, n), *gradients, *step;
  const uint32_t by[kWeights] = {0, 1, 2, 3};
  weft_value arguments[kWeights + 2], results[1 + kWeights];
  weft_builder* b;
  size_t i;
  check(weft_value_and_grad(loss, by, kWeights, &gradients));
  check(weft_builder_new(&b));
  for (i = 0; i < kWeights + 2; ++i)
    check(weft_builder_input(b, weft_graph_input_type(gradients, i), &arguments[i]));
  check(weft_builder_inline(b, gradients, arguments, kWeights + 2, results, 1 + kWeights));
  for (i = 0; i < kWeights; ++i)
    results[1 + i] =
        op2(b, "sub", arguments[i], op2(b, "mul", results[1 + i], scalar(b, rate), ""), "");
  step = finish(b, results, 1 + kWeights);
  weft_graph_free(loss);
  weft_graph_free(gradients);
  return step;
}

/* How many of n images the network gives their labels. */
static weft_graph* count_graph(const weft_type* weights, int n) {
  weft_builder* b;
  weft_value labels, guess, right;
  check(weft_builder_new(&b));
  guess = network(b, weights, n, &labels);
  guess = op1(b, "argmax", guess, "axes=(1,) index_dtype=int32");
  right = op1(b, "convert_element_type", op2(b, "eq", guess, labels, ""), "new_dtype=float32");
  right = op1(b, "reduce_sum", right, "axes=(0,)");
  return finish(b, &right, 1);
}

/* ---- Running ---- */

/* The images from number `first` on, and their labels, as a program takes them that has `like` as
 * its graph. */
static void load(const weft_session* session, const weft_graph* like, const weft_arrays* data,
                 size_t first, weft_buffer** out) {
  static const char* const names[2] = {"images", "labels"};
  size_t i, array;
  for (i = 0; i < 2; ++i) {
    weft_type type = weft_graph_input_type(like, kWeights + i);
    size_t size = weft_type_host_bytes(type), row = size / (size_t)weft_type_dims(type)[0];
    check(weft_arrays_find(data, weft_text_of(names[i]), &array));
    if (first * row + size > weft_type_host_bytes(weft_arrays_type(data, array))) {
      fprintf(stderr, "error: expected more %s\n", names[i]);
      exit(1);
    }
    check(weft_buffer_create(session, type,
                             (const char*)weft_arrays_bytes(data, array) + first * row, size, 0,
                             &out[i]));
  }
}

static weft_program* compiled(const weft_session* session, const weft_graph* graph,
                              size_t num_donated) {
  static const uint32_t donated[kWeights] = {0, 1, 2, 3};
  weft_compile_options options;
  weft_program* program;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.donated = donated;
  options.num_donated = num_donated;
  check(weft_session_compile(session, graph, &options, &program));
  return program;
}

static float number(weft_buffer* buffer) {
  float x;
  check(weft_buffer_read(buffer, &x, sizeof x));
  weft_buffer_free(buffer);
  return x;
}

int main(int argc, char** argv) {
  static const char* const names[kWeights] = {"w1", "b1", "w2", "b2"};
  weft_session* session;
  weft_arrays* data;
  weft_type types[kWeights];
  weft_text texts[kWeights];
  void* learnt[kWeights];
  weft_buffer* arguments[kWeights + 2]; /* weights, images, labels */
  weft_buffer* results[1 + kWeights];
  weft_graph *step, *count;
  weft_program *train, *test;
  size_t i, array, num_trained, epoch, first;
  if (argc != 4) {
    fprintf(stderr, "usage: digits PLUGIN DATA LEARNT\n");
    return 2;
  }
  check(weft_session_create(argv[1], NULL, 0, &session));
  check(weft_arrays_read(argv[2], &data));
  for (i = 0; i < kWeights; ++i) {
    texts[i] = weft_text_of(names[i]);
    check(weft_arrays_find(data, texts[i], &array));
    types[i] = weft_arrays_type(data, array);
    check(weft_buffer_create(session, types[i], weft_arrays_bytes(data, array),
                             weft_type_host_bytes(types[i]), 0, &arguments[i]));
  }
  check(weft_arrays_find(data, weft_text_of("labels"), &array));
  num_trained = (size_t)weft_type_num_elements(weft_arrays_type(data, array)) - kTested;

  step = step_graph(types, kBatch, 0.5);
  train = compiled(session, step, kWeights);
  for (epoch = 0; epoch < kEpochs; ++epoch) {
    float loss = 0;
    for (first = 0; first + kBatch <= num_trained; first += kBatch) {
      load(session, step, data, first, arguments + kWeights);
      check(weft_run(train, (const weft_buffer* const*)arguments, kWeights + 2, results,
                     1 + kWeights));
      for (i = 0; i < kWeights + 2; ++i) weft_buffer_free(arguments[i]);
      for (i = 0; i < kWeights; ++i) arguments[i] = results[1 + i];
      loss = number(results[0]);
    }
    if (epoch % 5 == 4) printf("epoch %d: loss %.4f\n", (int)epoch + 1, loss);
  }

  count = count_graph(types, kTested);
  test = compiled(session, count, 0);
  load(session, count, data, num_trained, arguments + kWeights);
  check(weft_run(test, (const weft_buffer* const*)arguments, kWeights + 2, results, 1));
  printf("accuracy %.4f on %s\n", number(results[0]) / kTested,
         weft_session_platform(session).data);

  for (i = 0; i < kWeights; ++i) {
    size_t size = weft_type_host_bytes(types[i]);
    learnt[i] = malloc(size);
    check(weft_buffer_read(arguments[i], learnt[i], size));
  }
  check(weft_arrays_write(argv[3], texts, types, (const void* const*)learnt, kWeights));

  for (i = 0; i < kWeights; ++i) free(learnt[i]);
  for (i = 0; i < kWeights + 2; ++i) weft_buffer_free(arguments[i]);
  weft_program_free(train);
  weft_program_free(test);
  weft_graph_free(step);
  weft_graph_free(count);
  weft_arrays_free(data);
  weft_session_free(session);
  return 0;
}
