/* Builds a loss, sum(tanh(w * x)), differentiates it and prints the program and its StableHLO.
 *
 *   cc grad.c -I$(python -m weft --include-dir) -L$(python -m weft --lib-dir) -lweft -o grad
 */
#include <stdio.h>
#include <stdlib.h>

#include "weft/c_api.h"

static void check(weft_error* error) {
  if (!error) return;
  fprintf(stderr, "error %d: %s\n", (int)weft_error_get_kind(error), weft_error_message(error));
  weft_error_free(error);
  exit(1);
}

static void print_and_free(weft_string* text) {
  weft_text t = weft_string_text(text);
  printf("%.*s\n", (int)t.size, t.data);
  weft_string_free(text);
}

int main(void) {
  weft_builder* b;
  check(weft_builder_new(&b));
  weft_type vector;
  check(weft_type_parse(weft_text_of("f32[128]"), &vector));
  weft_value x[2], product, activated, loss;
  check(weft_builder_input(b, vector, &x[0]));
  check(weft_builder_input(b, vector, &x[1]));
  weft_text none = weft_text_of(NULL);
  check(weft_builder_op(b, weft_text_of("mul"), x, 2, none, &product, 1, NULL));
  check(weft_builder_op(b, weft_text_of("tanh"), &product, 1, none, &activated, 1, NULL));
  check(weft_builder_op(b, weft_text_of("reduce_sum"), &activated, 1, weft_text_of("axes=(0,)"),
                        &loss, 1, NULL));
  weft_graph *graph, *step, *optimized;
  check(weft_builder_finish(b, &loss, 1, &graph));
  weft_builder_free(b);

  uint32_t by_w = 0;
  check(weft_value_and_grad(graph, &by_w, 1, &step));
  check(weft_optimize(step, &optimized));
  weft_string* text;
  check(weft_graph_print(optimized, &text));
  print_and_free(text);
  check(weft_emit_stablehlo(optimized, NULL, &text));
  print_and_free(text);

  weft_analysis analysis = {.struct_size = sizeof analysis};
  check(weft_analyze(optimized, &analysis));
  printf("%.0f operations, %.0f flops, at most %.0f bytes\n", analysis.ops, analysis.flops,
         analysis.peak_bytes);
  weft_graph_free(graph);
  weft_graph_free(step);
  weft_graph_free(optimized);
  return 0;
}
