/* ebnet's engine for C: load a packed network, run it, free it.
 *
 *   ebnet_engine* engine = NULL;
 *   if (ebnet_load("net.ebn", 1, &engine) != EBNET_OK) { fputs(ebnet_last_error(), stderr); return 1; }
 *   float* logits = malloc(sizeof(float) * ebnet_classes(engine));
 *   if (ebnet_run_u8(engine, pixels, 1, 224, 224, logits) != EBNET_OK) { ... }
 *   ebnet_free(engine);
 *
 * Every function may be called from several threads; calls on one engine take turns. No function throws, aborts or
 * prints. Strings belong to the library: those of an engine live as long as it does, ebnet_last_error's until the
 * calling thread's next failing call.
 */
#ifndef EBNET_H
#define EBNET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EBNET_OK 0

typedef struct ebnet_engine ebnet_engine;

/* The library's version, e.g. "0.1.0". */
const char* ebnet_version(void);

/* Functions that can fail return EBNET_OK or an error's number. */
const char* ebnet_error_name(int error); /* e.g. "TensorMissing" */
const char* ebnet_last_error(void);      /* a sentence about the calling thread's last failure, "" before any */

/* `threads` counts the caller's own. On failure *engine is NULL. The file stays open until ebnet_free: an expert's
 * weights are read when it is first chosen, and a run fails with FileChanged where they are no longer those that were
 * verified. Data in memory are copied. */
int ebnet_load(const char* path, int threads, ebnet_engine** engine);
int ebnet_load_memory(const void* data, size_t size, int threads, ebnet_engine** engine);
void ebnet_free(ebnet_engine* engine); /* NULL is allowed */

/* In what the residual stream between binary layers is kept. Narrow streams save memory and its traffic; their values
 * are rounded, so that near ties come out otherwise now and then. */
#define EBNET_STREAM_FP32 0
#define EBNET_STREAM_FP16 1
#define EBNET_STREAM_BF16 2

typedef struct ebnet_options {
  int threads;
  int stream; /* EBNET_STREAM_... */
} ebnet_options;

/* As ebnet_load, with all that can be chosen. */
int ebnet_load_with(const char* path, const ebnet_options* options, ebnet_engine** engine);

/* What the file says. */
int ebnet_classes(const ebnet_engine* engine);
int ebnet_in_channels(const ebnet_engine* engine);
int ebnet_input_size(const ebnet_engine* engine);                   /* side of the images it was trained for */
int ebnet_binary_layers(const ebnet_engine* engine);
const char* ebnet_label(const ebnet_engine* engine, int class_index); /* "" where the file has no labels */
const char* ebnet_isa(const ebnet_engine* engine);                  /* the kernels in use, e.g. "avx2" */

/* Optional: lay out memory for a batch of this size before the first run. */
int ebnet_plan(ebnet_engine* engine, int batch, int height, int width);

/* Logits go to [batch][classes]. f32: normalised images [batch][channels][height][width]; u8: pixels
 * [batch][height][width][channels], normalised with the file's mean and std. */
int ebnet_run_f32(ebnet_engine* engine, const float* images, int batch, int height, int width, float* logits);
int ebnet_run_u8(ebnet_engine* engine, const uint8_t* images, int batch, int height, int width, float* logits);

/* As ebnet_run_u8, and the chosen experts as [binary layers][batch]. */
int ebnet_experts_u8(ebnet_engine* engine, const uint8_t* images, int batch, int height, int width, float* logits,
                     int64_t* experts);

#ifdef __cplusplus
}
#endif

#endif
