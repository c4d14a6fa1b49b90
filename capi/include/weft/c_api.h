// SPDX-License-Identifier: Apache-2.0
/* libweft for C, and for all languages that call C: programs (graphs of operations over arrays) are
 * read or built, differentiated, vectorised, optimised and written as StableHLO text.
 *
 * Results. A function that can fail returns a weft_error*, which is NULL where it did not, and
 * gives its results through its last parameters; where it failed, these are left as they were. No
 * input ends the process: what is wrong with arguments is an error too.
 *
 * Ownership. What a function gives through a pointer to a handle (weft_graph**, weft_string**,
 * weft_builder**), and every weft_error*, belongs to the caller, who frees it with the function of
 * that name that ends in _free; these take NULL. Types are never freed. A weft_text is only looked
 * at during the call; what a function returns as a weft_text lives as long as what it was asked of.
 *
 * Threads. Graphs, types, strings and errors never change: threads may share them, and free
 * different handles at once. A builder belongs to one thread at a time.
 *
 * Versions. weft_abi_version() of the library has the major number of WEFT_ABI_VERSION, and at
 * least its minor number, where a program that was compiled with this header runs. Structs begin
 * with their size, which the caller sets, and grow at their end only.
 */
#ifndef WEFT_C_API_H_
#define WEFT_C_API_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define WEFT_C_API
#else
#define WEFT_C_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Major number times 65536 plus minor number. */
#define WEFT_ABI_VERSION 0x00010002u

WEFT_C_API uint32_t weft_abi_version(void);
/* "0.1.0" */
WEFT_C_API const char* weft_version(void);

/* ---- Text ---- */

/* Characters in UTF-8; no 0 needs to follow them. */
typedef struct weft_text {
  const char* data;
  size_t size;
} weft_text;

/* The text of a C string; an empty one of NULL. */
WEFT_C_API weft_text weft_text_of(const char* string);

typedef struct weft_string weft_string;
/* A 0 follows the characters. */
WEFT_C_API weft_text weft_string_text(const weft_string* string);
WEFT_C_API void weft_string_free(weft_string* string);

/* ---- Errors ---- */

typedef enum weft_error_kind {
  WEFT_ERROR_TYPE = 1,            /* an operand or attribute of the wrong kind */
  WEFT_ERROR_DTYPE = 2,           /* dtypes that an op does not take, or that do not match */
  WEFT_ERROR_SHAPE = 3,           /* shapes that do not fit */
  WEFT_ERROR_VALUE = 4,           /* a value out of range, an unknown name */
  WEFT_ERROR_INDEX = 5,           /* an index out of bounds */
  WEFT_ERROR_PARSE = 6,           /* malformed text */
  WEFT_ERROR_DEPTH = 7,           /* graphs nested too deeply in each other */
  WEFT_ERROR_SHARDING = 8,        /* splits of arrays that do not go together */
  WEFT_ERROR_NOT_IMPLEMENTED = 9, /* a rule that an op lacks */
  WEFT_ERROR_INTERNAL = 10,       /* a fault of weft itself */
  WEFT_ERROR_ARGUMENT = 11,    /* an argument of a function of this header that it does not take */
  WEFT_ERROR_MEMORY = 12,      /* no memory left */
  WEFT_ERROR_PLUGIN = 13,      /* a refusal by a PJRT plugin, or a library that is not one */
  WEFT_ERROR_INCONCLUSIVE = 14 /* what does not hold for all sizes that are symbols */
} weft_error_kind;

typedef struct weft_error weft_error;
WEFT_C_API weft_error_kind weft_error_get_kind(const weft_error* error);
/* What was expected, what came, and where. */
WEFT_C_API const char* weft_error_message(const weft_error* error);
/* The place in a text that was read, from 1 on; 0 where no text is at fault. */
WEFT_C_API size_t weft_error_line(const weft_error* error);
WEFT_C_API size_t weft_error_column(const weft_error* error);
WEFT_C_API void weft_error_free(weft_error* error);

/* ---- Types ---- */

/* A dtype and a shape. Equal types are the same pointer, for the life of the process. */
typedef const struct weft_type_data* weft_type;

/* Reads "f32[3,4]", "i64[]", "bf16[8]", "complex64[2]". */
WEFT_C_API weft_error* weft_type_parse(weft_text text, weft_type* type);
/* `dtype`: "f32" or "float32", and so on. `dims` has `rank` numbers that are not negative. */
WEFT_C_API weft_error* weft_type_make(weft_text dtype, const int64_t* dims, size_t rank,
                                      weft_type* type);
/* The short name: "f32". */
WEFT_C_API weft_text weft_type_dtype(weft_type type);
WEFT_C_API size_t weft_type_rank(weft_type type);
/* As many numbers as the rank. */
WEFT_C_API const int64_t* weft_type_dims(weft_type type);
WEFT_C_API int64_t weft_type_num_elements(weft_type type);
/* Of a dense buffer; elements of less than a byte are packed. */
WEFT_C_API int64_t weft_type_num_bytes(weft_type type);

/* ---- Graphs ---- */

/* A program: inputs, operations in order, outputs. */
typedef struct weft_graph weft_graph;

/* Reads weft's text of programs (docs/cli.md):
 *   { lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) } */
WEFT_C_API weft_error* weft_graph_parse(weft_text text, weft_graph** graph);
/* Reads a module of StableHLO, pretty or generic: its function `main`, or the only public one. */
WEFT_C_API weft_error* weft_graph_read_stablehlo(weft_text text, weft_graph** graph);
/* The text that weft_graph_parse() reads. */
WEFT_C_API weft_error* weft_graph_print(const weft_graph* graph, weft_string** text);
/* Another handle of the same graph. */
WEFT_C_API weft_error* weft_graph_share(const weft_graph* graph, weft_graph** same);
WEFT_C_API void weft_graph_free(weft_graph* graph);

/* Checks all invariants. */
WEFT_C_API weft_error* weft_graph_verify(const weft_graph* graph);
/* 1 for graphs that are the same but for names and lines. */
WEFT_C_API int weft_graph_equal(const weft_graph* a, const weft_graph* b);
/* Of contents alone: equal graphs have the same one in every process. */
WEFT_C_API uint64_t weft_graph_hash(const weft_graph* graph);

WEFT_C_API size_t weft_graph_num_inputs(const weft_graph* graph);
WEFT_C_API size_t weft_graph_num_outputs(const weft_graph* graph);
WEFT_C_API size_t weft_graph_num_ops(const weft_graph* graph);
/* NULL for a number that is too large, here and below. */
WEFT_C_API weft_type weft_graph_input_type(const weft_graph* graph, size_t input);
WEFT_C_API weft_type weft_graph_output_type(const weft_graph* graph, size_t output);

/* A value of a graph or of a builder: an input, a result of an op, or a scalar that is written in
 * the program. Inputs are the values 0, 1, 2 ... of their graph. */
typedef struct weft_value {
  uint32_t id;
} weft_value;
/* No value. */
#define WEFT_NO_VALUE 0xffffffffu

WEFT_C_API weft_value weft_graph_output(const weft_graph* graph, size_t output);
WEFT_C_API weft_type weft_graph_value_type(const weft_graph* graph, weft_value value);
/* The text of a scalar that is written in the program, "2.0"; of other values, an error. */
WEFT_C_API weft_error* weft_graph_literal(const weft_graph* graph, weft_value value,
                                          weft_string** text);

/* Operations by number, in the order in which they run. */
WEFT_C_API weft_text weft_op_name(const weft_graph* graph, size_t op);
WEFT_C_API size_t weft_op_num_operands(const weft_graph* graph, size_t op);
WEFT_C_API weft_value weft_op_operand(const weft_graph* graph, size_t op, size_t operand);
WEFT_C_API size_t weft_op_num_results(const weft_graph* graph, size_t op);
WEFT_C_API weft_value weft_op_result(const weft_graph* graph, size_t op, size_t result);
/* How the op stands in the program's text, with its attributes and graphs. */
WEFT_C_API weft_error* weft_op_print(const weft_graph* graph, size_t op, weft_string** text);
/* "model.py:12 (loss)"; "<unknown>" where it is not known. */
WEFT_C_API weft_error* weft_op_location(const weft_graph* graph, size_t op, weft_string** text);

/* Names of all operations, one a line, each with what it does. */
WEFT_C_API weft_error* weft_list_ops(weft_string** text);

/* ---- Building graphs ---- */

typedef struct weft_builder weft_builder;

WEFT_C_API weft_error* weft_builder_new(weft_builder** builder);
WEFT_C_API void weft_builder_free(weft_builder* builder);

/* Inputs may be added at any time; their order is that in which they are added. */
WEFT_C_API weft_error* weft_builder_input(weft_builder* builder, weft_type type, weft_value* value);
/* A scalar of a dtype, rounded to it (floats) or wrapped (integers). */
WEFT_C_API weft_error* weft_builder_scalar(weft_builder* builder, weft_text dtype, double x,
                                           weft_value* value);
/* An array that is written in the program: its elements in row-major order, each in whole bytes,
 * the low ones first. `num_bytes` must be what the type takes. */
WEFT_C_API weft_error* weft_builder_constant(weft_builder* builder, weft_type type,
                                             const void* bytes, size_t num_bytes,
                                             weft_value* value);
/* An operation: its name, operands, and attributes as they stand between brackets in a program's
 * text, "axes=(0,)"; a graph in them is written as weft_graph_print() gives it. `results` has room
 * for `max_results` values; how many there are is in `num_results`, which may be NULL. */
WEFT_C_API weft_error* weft_builder_op(weft_builder* builder, weft_text name,
                                       const weft_value* operands, size_t num_operands,
                                       weft_text attributes, weft_value* results,
                                       size_t max_results, size_t* num_results);
/* The operations of a graph, with its inputs replaced; `outputs` has room for all of its outputs.
 */
WEFT_C_API weft_error* weft_builder_inline(weft_builder* builder, const weft_graph* graph,
                                           const weft_value* arguments, size_t num_arguments,
                                           weft_value* outputs, size_t max_outputs);
/* The line that operations from here on are of; `function` may be empty. */
WEFT_C_API weft_error* weft_builder_set_location(weft_builder* builder, weft_text file,
                                                 int32_t line, weft_text function);
WEFT_C_API weft_type weft_builder_type(const weft_builder* builder, weft_value value);
/* The graph of all that was added; the builder is empty afterwards. */
WEFT_C_API weft_error* weft_builder_finish(weft_builder* builder, const weft_value* outputs,
                                           size_t num_outputs, weft_graph** graph);

/* ---- Transforms: from graph to graph ----
 *
 * A mask has a byte for each input: 1 for those that are meant, else 0. */

/* Gradients of a graph whose one output is a float scalar, by the inputs with these numbers: the
 * same inputs to the gradients, or to the output and the gradients. */
WEFT_C_API weft_error* weft_grad(const weft_graph* graph, const uint32_t* inputs, size_t num_inputs,
                                 weft_graph** gradients);
WEFT_C_API weft_error* weft_value_and_grad(const weft_graph* graph, const uint32_t* inputs,
                                           size_t num_inputs, weft_graph** value_and_gradients);
/* Inputs, then tangents of the masked inputs, to outputs, then tangents of all outputs that are
 * float or complex. */
WEFT_C_API weft_error* weft_jvp(const weft_graph* graph, const uint8_t* mask, size_t num_inputs,
                                weft_graph** dual);
/* Inputs, then cotangents of outputs, to outputs, then cotangents of the masked inputs. Outputs
 * that do not depend on masked inputs have no cotangent: `has_cotangent`, with a byte for each
 * output, says which have one; it may be NULL. */
WEFT_C_API weft_error* weft_vjp(const weft_graph* graph, const uint8_t* mask, size_t num_inputs,
                                uint8_t* has_cotangent, weft_graph** pulled);
/* Of a graph that is linear in the masked inputs: the other inputs, then cotangents of all outputs,
 * to cotangents of the masked inputs. */
WEFT_C_API weft_error* weft_transpose(const weft_graph* graph, const uint8_t* mask,
                                      size_t num_inputs, weft_graph** transposed);
/* For each output and each masked input, an array of the output's shape followed by the input's. By
 * columns (forward) where `forward` is not 0, else by rows. */
WEFT_C_API weft_error* weft_jacobian(const weft_graph* graph, const uint8_t* mask,
                                     size_t num_inputs, int forward, weft_graph** jacobian);
/* All elements of a mapped axis of `size` at once. `axes` has a number for each input: where it has
 * the axis, or -1 if it is the same for all. All outputs have the axis in front. */
WEFT_C_API weft_error* weft_vmap(const weft_graph* graph, const int32_t* axes, size_t num_inputs,
                                 int64_t size, weft_graph** mapped);

/* ---- Passes, analysis, emission ---- */

/* The passes that run before emission. */
WEFT_C_API weft_error* weft_optimize(const weft_graph* graph, weft_graph** optimized);
/* Passes by name, with commas between them: "simplify,dce". */
WEFT_C_API weft_error* weft_run_passes(const weft_graph* graph, weft_text passes,
                                       weft_graph** result);
/* Names of all passes, one a line, each with what it does. */
WEFT_C_API weft_error* weft_list_passes(weft_string** text);

typedef struct weft_analysis {
  size_t struct_size; /* sizeof(weft_analysis), set by the caller */
  double ops;
  double flops;
  double transcendentals; /* functions such as exp, an element each */
  double bytes;           /* read and written by operations */
  double critical_path;   /* operations on the longest chain */
  double peak_bytes;      /* live at once, when operations run in order */
  double input_bytes;
  double output_bytes;
} weft_analysis;
/* What one run of the graph takes. */
WEFT_C_API weft_error* weft_analyze(const weft_graph* graph, weft_analysis* analysis);
/* The same as text, by operation and by line. */
WEFT_C_API weft_error* weft_report(const weft_graph* graph, weft_string** text);

typedef struct weft_emit_options {
  size_t struct_size;    /* sizeof(weft_emit_options), set by the caller */
  weft_text module_name; /* empty: "jit_f" */
  weft_text platform;    /* "cpu", "cuda", "rocm", "tpu"; empty: "cpu" */
  int32_t locations;     /* not 0: lines of the operations are written */
} weft_emit_options;
/* StableHLO text, a module whose function `main` is the graph. `options` may be NULL. Calls of
 * functions that only a Python process has are errors. */
WEFT_C_API weft_error* weft_emit_stablehlo(const weft_graph* graph,
                                           const weft_emit_options* options, weft_string** text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WEFT_C_API_H_ */
