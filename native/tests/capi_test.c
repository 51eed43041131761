/* The C API from C, under the sanitizers: capi_test FILE */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ebnet.h"

static int failures = 0;

static void expect(int condition, const char* what) {
  if (condition) return;
  printf("FAILED: %s (%s)\n", what, ebnet_last_error());
  ++failures;
}

static int said(const char* words) { return strstr(ebnet_last_error(), words) != NULL; }

static void null_is_harmless(void) {
  ebnet_engine* engine = NULL;
  ebnet_session* session = NULL;
  expect(ebnet_classes(NULL) == 0 && ebnet_in_channels(NULL) == 0 && ebnet_input_size(NULL) == 0, "getters of NULL");
  expect(ebnet_binary_layers(NULL) == 0 && ebnet_session_bytes(NULL) == 0, "counts of NULL");
  expect(ebnet_label(NULL, 0)[0] == '\0' && ebnet_isa(NULL)[0] == '\0', "strings of NULL");
  expect(ebnet_plan(NULL, 1, 8, 8) != EBNET_OK && ebnet_run_u8(NULL, NULL, 1, 8, 8, NULL) != EBNET_OK, "runs of NULL");
  expect(ebnet_load(NULL, 1, &engine) != EBNET_OK && said("path is NULL"), "no path");
  expect(ebnet_load("x", 1, NULL) != EBNET_OK && ebnet_load_memory(NULL, 3, 1, &engine) != EBNET_OK, "nowhere to load");
  expect(ebnet_session_open(NULL, &session) != EBNET_OK && session == NULL, "a session of NULL");
  expect(ebnet_session_run_u8(NULL, NULL, 1, 8, 8, NULL, NULL) != EBNET_OK, "a run of no session");
  ebnet_session_cancel(NULL);
  ebnet_session_free(NULL);
  ebnet_free(NULL);
  expect(ebnet_notice()[0] == '\0', "nothing to say of the kernels");
}

static void options(const char* path, const void* data, size_t size) {
  ebnet_engine* engine = NULL;
  ebnet_options chosen = EBNET_OPTIONS_INIT;
  expect(ebnet_load_with(path, NULL, &engine) == EBNET_OK, "no options are the defaults");
  ebnet_free(engine);
  chosen.stream = EBNET_STREAM_BF16;
  chosen.threads = 2;
  chosen.cache_dir = "";
  expect(ebnet_load_memory_with(data, size, &chosen, &engine) == EBNET_OK, "options for data in memory");
  expect(ebnet_plan(engine, 1, 8, 8) == EBNET_OK && ebnet_plan(engine, 1, -8, 8) != EBNET_OK, "plans");
  ebnet_free(engine);
  chosen.stream = 3;
  expect(ebnet_load_with(path, &chosen, &engine) != EBNET_OK && said("ArgumentInvalid: stream=3"), "no such stream");
  expect(engine == NULL, "no engine after a failure");

  /* A program that was compiled when there were two settings. */
  chosen.stream = EBNET_STREAM_FP16;
  chosen.limit_work = 1;
  chosen.struct_size = offsetof(ebnet_options, cache_dir);
  expect(ebnet_load_with(path, &chosen, &engine) == EBNET_OK, "older options");
  expect(ebnet_plan(engine, 1, 8, 8) == EBNET_OK, "what it does not know of is at its default");
  ebnet_free(engine);
  chosen.struct_size = sizeof chosen;
  expect(ebnet_load_with(path, &chosen, &engine) == EBNET_OK, "limits");
  expect(ebnet_plan(engine, 1, 8, 8) != EBNET_OK && said("PlanTooLarge"), "a limit of work");
  ebnet_free(engine);
  chosen.struct_size = sizeof chosen + 8;
  expect(ebnet_load_with(path, &chosen, &engine) != EBNET_OK && said("struct_size"), "newer options");
  chosen.struct_size = 0;
  expect(ebnet_load_with(path, &chosen, &engine) != EBNET_OK && said("struct_size"), "options without a size");
  expect(ebnet_load("/nowhere.ebn", 1, &engine) != EBNET_OK && said("FileMissing"), "a missing file");
}

static void* cancel_soon(void* session) {
  const struct timespec some = {0, 30 * 1000 * 1000};
  for (int i = 0; i < 200; ++i) {
    nanosleep(&some, NULL);
    ebnet_session_cancel(session);
  }
  return NULL;
}

static void sessions(const char* path) {
  enum { kMany = 20000, kSide = 24 };
  ebnet_engine* engine = NULL;
  ebnet_session *one = NULL, *two = NULL;
  expect(ebnet_load(path, 1, &engine) == EBNET_OK, "load");
  const int classes = ebnet_classes(engine), layers = ebnet_binary_layers(engine);
  const size_t image = (size_t)(kSide * kSide * ebnet_in_channels(engine));
  uint8_t* pixels = malloc(kMany * image);
  float* logits = malloc(sizeof(float) * (size_t)classes * kMany);
  float* again = malloc(sizeof(float) * (size_t)classes);
  int64_t* experts = malloc(sizeof(int64_t) * (size_t)layers);
  if (pixels == NULL || logits == NULL || again == NULL || experts == NULL) exit(2);
  for (size_t i = 0; i < kMany * image; ++i) pixels[i] = (uint8_t)(i * 37 >> 2);
  expect(ebnet_session_open(engine, &one) == EBNET_OK && ebnet_session_open(engine, &two) == EBNET_OK, "two sessions");
  expect(ebnet_session_bytes(one) == 0, "a session that ran nothing has no memory");
  expect(ebnet_session_run_u8(one, pixels, 1, kSide, kSide, logits, experts) == EBNET_OK, "a run");
  expect(ebnet_run_u8(engine, pixels, 1, kSide, kSide, again) == EBNET_OK, "the engine's own");
  expect(memcmp(logits, again, sizeof(float) * (size_t)classes) == 0, "both give the same");
  expect(ebnet_session_bytes(one) > 0 && ebnet_session_bytes(two) == 0, "memory is the session's");
  expect(ebnet_session_run_u8(one, NULL, 1, 8, 8, NULL, NULL) != EBNET_OK && said("ArgumentInvalid"), "null pointers");

  pthread_t other;
  expect(pthread_create(&other, NULL, cancel_soon, one) == 0, "a thread");
  const int error = ebnet_session_run_u8(one, pixels, kMany, kSide, kSide, logits, NULL);
  expect(strcmp(ebnet_error_name(error), "Cancelled") == 0, "a run that is cancelled says so");
  pthread_join(other, NULL);
  ebnet_free(engine);
  expect(ebnet_session_run_u8(one, pixels, 1, kSide, kSide, logits, NULL) == EBNET_OK, "the session lives on");
  expect(memcmp(logits, again, sizeof(float) * (size_t)classes) == 0, "and gives the same");
  ebnet_session_free(one);
  ebnet_session_free(two);
  free(experts);
  free(again);
  free(logits);
  free(pixels);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  FILE* file = fopen(argv[1], "rb");
  if (file == NULL) return 2;
  static char data[1 << 20];
  const size_t size = fread(data, 1, sizeof data, file);
  fclose(file);
  null_is_harmless();
  options(argv[1], data, size);
  sessions(argv[1]);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
