// A plugin of qemu: how many instructions were executed, by the address of the straight run of code they are in.
//   qemu-aarch64 -plugin libcount.so,out=counts.txt PROGRAM ...
// writes a line `address instructions` for each. arm.py sums them up by function.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is used of version 1 of qemu's interface to plugins; its header is in no package of Debian's.
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb*);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb*, int add_u64, void* counter, uint64_t addend);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);

struct run {
  uint64_t address, executed;
  struct run* next;
};
static struct run* runs;
static char* out;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb* block) {
  (void)id;
  struct run* run = calloc(1, sizeof *run);
  if (run == NULL) abort();
  run->address = qemu_plugin_tb_vaddr(block);
  run->next = runs;
  runs = run;
  qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &run->executed, qemu_plugin_tb_n_insns(block));
}

static void finished(qemu_plugin_id_t id, void* unused) {
  (void)id, (void)unused;
  FILE* file = fopen(out, "w");
  if (file == NULL) abort();
  for (const struct run* run = runs; run != NULL; run = run->next) {
    if (run->executed > 0) fprintf(file, "%" PRIx64 " %" PRIu64 "\n", run->address, run->executed);
  }
  fclose(file);
}

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int count,
                                                               char** options) {
  (void)info;
  if (count != 1 || strncmp(options[0], "out=", 4) != 0) return 1;
  out = strdup(options[0] + 4);
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, finished, NULL);
  return 0;
}
