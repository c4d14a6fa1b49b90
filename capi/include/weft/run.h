// SPDX-License-Identifier: Apache-2.0
/* Programs run from C: a session opens a PJRT plugin (a shared library), compiles graphs with it,
 * and runs them on its devices; arrays are read from files. Results, ownership and versions are
 * those of weft/c_api.h.
 *
 * Sessions, programs and buffers may be freed in any order: each keeps what it needs. Threads may
 * share them. A buffer that a program takes over must not be in use by another thread. Libraries
 * stay open until the process ends.
 */
#ifndef WEFT_RUN_H_
#define WEFT_RUN_H_

#include "weft/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sessions ---- */

typedef struct weft_session weft_session;

typedef enum weft_option_kind {
  WEFT_OPTION_TEXT = 0,
  WEFT_OPTION_INT = 1,
  WEFT_OPTION_INTS = 2,
  WEFT_OPTION_FLOAT = 3,
  WEFT_OPTION_BOOL = 4
} weft_option_kind;

/* What a plugin's client is made with; names are the plugin's own. Of the fields of values, the one
 * of the option's kind counts; `integer` is 0 or 1 for a bool. */
typedef struct weft_session_option {
  weft_text name;
  weft_option_kind kind;
  weft_text text;
  int64_t integer;
  const int64_t* integers;
  size_t num_integers;
  float real;
} weft_session_option;

/* `plugin` is the path of a library. NULL: the first that the environment variable
 * PJRT_NAMES_AND_LIBRARY_PATHS names ("cpu:/path/of.so,other:/path"). Takes plugins of the PJRT
 * versions from 0.81 on. */
WEFT_C_API weft_error* weft_session_create(const char* plugin, const weft_session_option* options,
                                           size_t num_options, weft_session** session);
WEFT_C_API void weft_session_free(weft_session* session);

/* Version of PJRT's interface that the plugin has. */
WEFT_C_API void weft_session_api_version(const weft_session* session, int* major, int* minor);
/* "cpu", "cuda", "tpu" */
WEFT_C_API weft_text weft_session_platform(const weft_session* session);
/* Devices are numbered from 0 on. */
WEFT_C_API size_t weft_session_num_devices(const weft_session* session);
/* Empty for a number that is too large. */
WEFT_C_API weft_text weft_session_device_kind(const weft_session* session, size_t device);

/* ---- Buffers: arrays on a device ----
 *
 * On the host an array is row-major, each element in whole bytes, the low ones first. */

typedef struct weft_buffer weft_buffer;

/* The bytes that an array takes on the host. */
WEFT_C_API size_t weft_type_host_bytes(weft_type type);
/* Copies an array from the host; `bytes` may change afterwards. */
WEFT_C_API weft_error* weft_buffer_create(const weft_session* session, weft_type type,
                                          const void* bytes, size_t num_bytes, size_t device,
                                          weft_buffer** buffer);
WEFT_C_API void weft_buffer_free(weft_buffer* buffer);
WEFT_C_API weft_type weft_buffer_type(const weft_buffer* buffer);
WEFT_C_API size_t weft_buffer_device(const weft_buffer* buffer);
/* Waits until the elements are computed, and copies them to the host. */
WEFT_C_API weft_error* weft_buffer_read(const weft_buffer* buffer, void* bytes, size_t num_bytes);
WEFT_C_API weft_error* weft_buffer_copy(const weft_buffer* buffer, size_t device,
                                        weft_buffer** copy);

/* ---- Programs ---- */

typedef struct weft_program weft_program;

typedef struct weft_compile_options {
  size_t struct_size; /* sizeof(weft_compile_options), set by the caller */
  weft_text name;     /* empty: "jit_f" */
  size_t device;
  /* Numbers of the inputs whose buffers the program takes over: each for an output of the same
   * type, if there is one left. They can only be freed afterwards. */
  const uint32_t* donated;
  size_t num_donated;
} weft_compile_options;

/* Optimises and compiles. `options` may be NULL. A program that would call functions which plugins
 * do not have, such as those of LAPACK, is written in StableHLO alone, as for the platform
 * "portable"; it takes over no buffers. Where it cannot be, that is an error. */
WEFT_C_API weft_error* weft_session_compile(const weft_session* session, const weft_graph* graph,
                                            const weft_compile_options* options,
                                            weft_program** program);
WEFT_C_API void weft_program_free(weft_program* program);

/* Runs a program. Its arguments are on its device. `outputs` has room for all outputs, which may
 * still be computed when it returns. Without an error each of them is to be freed. */
WEFT_C_API weft_error* weft_run(const weft_program* program, const weft_buffer* const* arguments,
                                size_t num_arguments, weft_buffer** outputs, size_t num_outputs);

/* ---- Arrays in files ----
 *
 * Files of safetensors: weights to start from, and those that were learnt. */

typedef struct weft_arrays weft_arrays;

WEFT_C_API weft_error* weft_arrays_read(const char* path, weft_arrays** arrays);
WEFT_C_API void weft_arrays_free(weft_arrays* arrays);
WEFT_C_API size_t weft_arrays_count(const weft_arrays* arrays);
/* In the order of the file. Empty or NULL for a number that is too large. */
WEFT_C_API weft_text weft_arrays_name(const weft_arrays* arrays, size_t array);
WEFT_C_API weft_type weft_arrays_type(const weft_arrays* arrays, size_t array);
/* What weft_buffer_create() takes; as many bytes as weft_type_host_bytes() says. */
WEFT_C_API const void* weft_arrays_bytes(const weft_arrays* arrays, size_t array);
/* The number of the array with this name; an error, with the names that there are, if none has it.
 */
WEFT_C_API weft_error* weft_arrays_find(const weft_arrays* arrays, weft_text name, size_t* array);
/* Writes a file of `num_arrays` arrays with names, types and bytes. */
WEFT_C_API weft_error* weft_arrays_write(const char* path, const weft_text* names,
                                         const weft_type* types, const void* const* bytes,
                                         size_t num_arrays);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* WEFT_RUN_H_ */
