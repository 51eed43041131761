/* ebnet's engine for C: load a packed network, run it, free it.
 *
 *   ebnet_engine* engine = NULL;
 *   if (ebnet_load("net.ebn", 1, &engine) != EBNET_OK) { fputs(ebnet_last_error(), stderr); return 1; }
 *   float* logits = malloc(sizeof(float) * ebnet_classes(engine));
 *   if (ebnet_run_u8(engine, pixels, 1, 224, 224, logits) != EBNET_OK) { ... }
 *   ebnet_free(engine);
 *
 * Every function may be called from several threads; calls on one engine run side by side. No function throws, aborts
 * or prints. Strings belong to the library: those of an engine live as long as it does, others until the calling
 * thread's next call of the same function. Functions that only ask give 0 or "" for NULL.
 */
#ifndef EBNET_H
#define EBNET_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define EBNET_API __attribute__((visibility("default")))
#else
#define EBNET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define EBNET_OK 0

typedef struct ebnet_engine ebnet_engine;
typedef struct ebnet_session ebnet_session;

/* The library's version, e.g. "0.1.0". */
EBNET_API const char* ebnet_version(void);

/* Functions that can fail return EBNET_OK or an error's number. */
EBNET_API const char* ebnet_error_name(int error); /* e.g. "TensorMissing" */
EBNET_API const char* ebnet_last_error(void);      /* a sentence about the calling thread's last failure, or "" */
/* A kernel that is wrong on this CPU is not used; one sentence about each that was found, to whoever asks first, or "". */
EBNET_API const char* ebnet_notice(void);

/* In what the residual stream between binary layers is kept. Narrow streams save memory and its traffic; their values
 * are rounded, so that near ties come out otherwise now and then. */
#define EBNET_STREAM_FP32 0
#define EBNET_STREAM_FP16 1
#define EBNET_STREAM_BF16 2

/* All that can be chosen. Fields are only ever added at the end, and a program compiled with fewer of them gets the
 * defaults of the others: begin with EBNET_OPTIONS_INIT. */
typedef struct ebnet_options {
  size_t struct_size;
  int threads;             /* of one call, the caller's own included */
  int stream;              /* EBNET_STREAM_... */
  const char* cache_dir;   /* where measured kernels are remembered; NULL: the user's cache, "": nowhere */
  uint64_t limit_work;     /* values read and written for one image; 0: as go with the file and the image */
  uint64_t limit_memory;   /* bytes for one image; 0: as go with the file and the image */
  int limit_side;          /* pixels of a side; 0: 8192, and 1024 for the size in the file */
} ebnet_options;

#define EBNET_OPTIONS_INIT {sizeof(ebnet_options), 1, EBNET_STREAM_FP32, NULL, 0, 0, 0}

/* On failure *engine is NULL; options may be NULL. A file stays open until ebnet_free: an expert's weights are read when
 * it is first chosen, and a run fails with FileChanged where they are no longer those that were verified. Data in memory
 * are copied. */
EBNET_API int ebnet_load_with(const char* path, const ebnet_options* options, ebnet_engine** engine);
EBNET_API int ebnet_load_memory_with(const void* data, size_t size, const ebnet_options* options, ebnet_engine** engine);
/* The same with so many threads and all else at its default. */
EBNET_API int ebnet_load(const char* path, int threads, ebnet_engine** engine);
EBNET_API int ebnet_load_memory(const void* data, size_t size, int threads, ebnet_engine** engine);
EBNET_API void ebnet_free(ebnet_engine* engine); /* NULL is allowed */

/* What the file says. */
EBNET_API int ebnet_classes(const ebnet_engine* engine);
EBNET_API int ebnet_in_channels(const ebnet_engine* engine);
EBNET_API int ebnet_input_size(const ebnet_engine* engine); /* side of the images it was trained for */
EBNET_API int ebnet_binary_layers(const ebnet_engine* engine);
EBNET_API const char* ebnet_label(const ebnet_engine* engine, int class_index); /* "" where the file has no labels */
EBNET_API const char* ebnet_isa(const ebnet_engine* engine);                    /* the kernels in use, e.g. "avx2" */

/* Optional: make ready for a batch of this size before the first run. */
EBNET_API int ebnet_plan(ebnet_engine* engine, int batch, int height, int width);

/* Logits go to [batch][classes]. f32: normalised images [batch][channels][height][width]; u8: pixels
 * [batch][height][width][channels], normalised with the file's mean and std. */
EBNET_API int ebnet_run_f32(ebnet_engine* engine, const float* images, int batch, int height, int width, float* logits);
EBNET_API int ebnet_run_u8(ebnet_engine* engine, const uint8_t* images, int batch, int height, int width, float* logits);

/* As ebnet_run_u8, and the chosen experts as [binary layers][batch]. */
EBNET_API int ebnet_experts_u8(ebnet_engine* engine, const uint8_t* images, int batch, int height, int width,
                               float* logits, int64_t* experts);

/* A session is one caller's activations and threads over the engine's weights. The calls above take one from a few that
 * the engine keeps; a caller with its own decides how much memory there is and can cancel. Calls on one session take
 * turns. A session may outlive its engine. */
EBNET_API int ebnet_session_open(ebnet_engine* engine, ebnet_session** session);
EBNET_API void ebnet_session_free(ebnet_session* session); /* NULL is allowed */
/* `experts` may be NULL. */
EBNET_API int ebnet_session_run_f32(ebnet_session* session, const float* images, int batch, int height, int width,
                                    float* logits, int64_t* experts);
EBNET_API int ebnet_session_run_u8(ebnet_session* session, const uint8_t* images, int batch, int height, int width,
                                   float* logits, int64_t* experts);
/* From another thread: the run under way, if any, soon ends with Cancelled. */
EBNET_API void ebnet_session_cancel(ebnet_session* session);
EBNET_API size_t ebnet_session_bytes(ebnet_session* session); /* of memory, after what was run so far */

#ifdef __cplusplus
}
#endif

#endif
