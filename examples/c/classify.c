/* Classify a picture with a packed network, in C:  classify net.ebn picture.ppm
 *
 * The picture is a binary PPM (P6, 8 bits), at any size; scale it to the network's input size for the best result, e.g.
 * `convert cat.jpg -resize 224x224! cat.ppm`. Prints the five most probable classes.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ebnet.h"

/* Pixels [height][width][3], or NULL. */
static unsigned char* read_ppm(const char* path, int* width, int* height) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) return NULL;
  unsigned char* pixels = NULL;
  if (fscanf(file, "P6 %d %d 255", width, height) == 2 && fgetc(file) != EOF && *width > 0 && *height > 0 &&
      *width <= 8192 && *height <= 8192) {
    const size_t bytes = (size_t)*width * (size_t)*height * 3;
    pixels = malloc(bytes);
    if (pixels != NULL && fread(pixels, 1, bytes, file) != bytes) {
      free(pixels);
      pixels = NULL;
    }
  }
  fclose(file);
  return pixels;
}

static void print_best(const ebnet_engine* engine, float* logits, int count) {
  const int classes = ebnet_classes(engine);
  double total = 0;
  float largest = logits[0];
  for (int i = 1; i < classes; ++i) largest = logits[i] > largest ? logits[i] : largest;
  for (int i = 0; i < classes; ++i) total += exp((double)logits[i] - largest);
  for (int rank = 0; rank < count && rank < classes; ++rank) {
    int best = 0;
    for (int i = 1; i < classes; ++i) best = logits[i] > logits[best] ? i : best;
    printf("%d %.4f %s\n", best, exp((double)logits[best] - largest) / total, ebnet_label(engine, best));
    logits[best] = -HUGE_VALF;
  }
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s net.ebn picture.ppm\n", argv[0]);
    return 2;
  }
  ebnet_engine* engine = NULL;
  if (ebnet_load(argv[1], 1, &engine) != EBNET_OK) {
    fprintf(stderr, "%s\n", ebnet_last_error());
    return 1;
  }
  int width = 0, height = 0, result = 1;
  unsigned char* pixels = ebnet_in_channels(engine) == 3 ? read_ppm(argv[2], &width, &height) : NULL;
  float* logits = malloc(sizeof(float) * (size_t)ebnet_classes(engine));
  if (pixels == NULL || logits == NULL) {
    fprintf(stderr, "%s is no P6 picture, or the network does not take three channels\n", argv[2]);
  } else if (ebnet_run_u8(engine, pixels, 1, height, width, logits) != EBNET_OK) {
    fprintf(stderr, "%s\n", ebnet_last_error());
  } else {
    print_best(engine, logits, 5);
    result = 0;
  }
  free(logits);
  free(pixels);
  ebnet_free(engine);
  return result;
}
