// A libcuda.so.1 without a GPU, for tests of arrayjit/runtime/cuda/bindings.py: NVIDIA's own package calls it.
//
// It does at once what it is asked for, in host memory, and is strict: handles must be of the device whose context
// is current, memory must have been allocated, and after a bad access a device answers nothing else. The kernels of
// device_cases.py are known to it by name. A stream of device d is 1000 (d + 1) + its number, so that mixed up
// handles are noticed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int Status;
typedef unsigned long long Address;
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, BAD_CONTEXT = 201, NO_PEER = 217, OPEN_ALREADY = 704, BAD_HANDLE = 400, NOT_FOUND = 500, BAD_ACCESS = 700 };
enum { DEVICES = 2, MOST = 4096, MOST_BYTES = 64 << 20 };

static int setting(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}

static __thread int current = -1;
static Status failed[DEVICES];
static size_t in_use[DEVICES];
// May kernels of the first device use memory of the second: by their contexts, by the second's pool?
static int is_open[DEVICES][DEVICES], is_pool_open[DEVICES][DEVICES];
static struct { Address start; size_t size; int device; } blocks[MOST];
static intptr_t next_handle = 1;

typedef struct Node { char name[32]; long long values[8]; unsigned grid, block; Address into; int byte; size_t size; struct Node *next; } Node;
static Node *noting[DEVICES], *last[DEVICES];
static int is_noting[DEVICES];

static int device_of(void *handle) { return (int)((intptr_t)handle / 1000000 - 1); }
static void *handle_on(int device) { return (void *)((device + 1) * (intptr_t)1000000 + next_handle++); }
static Status here(void *handle) {
  if (current < 0) return BAD_CONTEXT;
  if (failed[current]) return failed[current];
  return device_of(handle) == current ? OK : BAD_HANDLE;
}
static int owner(Address at, size_t size) {
  for (int i = 0; i < MOST; i++)
    if (blocks[i].start && blocks[i].start <= at && at + size <= blocks[i].start + blocks[i].size) return blocks[i].device;
  return -1;
}
static Status inside(int device, Address at, size_t size) {
  int other = owner(at, size);
  if (other == device || (other >= 0 && is_open[device][other] && is_pool_open[device][other])) return OK;
  return failed[device] = BAD_ACCESS;
}

Status cuInit(unsigned flags) { return setting("FAKE_CUDA_DEVICES", DEVICES) ? OK : NO_DEVICE; }
Status cuDriverGetVersion(int *version) { *version = setting("FAKE_CUDA_VERSION", 12040); return OK; }
Status cuDeviceGetCount(int *count) { *count = setting("FAKE_CUDA_DEVICES", DEVICES); return OK; }
Status cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal < DEVICES ? OK : 101; }
Status cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "fake GPU %d", device); return OK; }
Status cuDeviceTotalMem(size_t *size, int device) { *size = MOST_BYTES; return OK; }
Status cuDeviceGetAttribute(int *value, int kind, int device) {
  *value = kind == 75 ? 9 : kind == 76 ? 0 : kind == 16 ? 132 : kind == 97 ? 232448 : kind == 38 ? 50 << 20 : -1;
  return OK;
}
Status cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(intptr_t)(device + 100); return OK; }
Status cuCtxSetCurrent(void *context) { current = (int)((intptr_t)context - 100); return OK; }
Status cuCtxSynchronize(void) { return current < 0 ? BAD_CONTEXT : failed[current]; }
Status cuDeviceGetDefaultMemPool(void **pool, int device) { *pool = (void *)(intptr_t)(device + 200); return OK; }
Status cuMemPoolSetAttribute(void *pool, int kind, void *value) { return kind == 4 && *(uint64_t *)value == ~0ull ? OK : INVALID; }

typedef struct { int type, id, flags; } Access;
Status cuDeviceCanAccessPeer(int *can, int device, int other) {
  *can = device != other && setting("FAKE_CUDA_PEERS", 1);
  return OK;
}
Status cuCtxEnablePeerAccess(void *context, unsigned flags) {
  int other = (int)((intptr_t)context - 100);
  if (current < 0 || other == current || !setting("FAKE_CUDA_PEERS", 1)) return NO_PEER;
  if (is_open[current][other]) return OPEN_ALREADY;
  is_open[current][other] = 1;
  return flags ? INVALID : OK;
}
Status cuMemPoolSetAccess(void *pool, const Access *access, size_t count) {
  int owner = (int)((intptr_t)pool - 200);
  if (count != 1 || access->type != 1 || access->flags != 3 || access->id == owner) return INVALID;
  is_pool_open[access->id][owner] = 1;
  return OK;
}

Status cuMemAllocAsync(Address *address, size_t size, void *stream) {
  Status status = here(stream);
  if (status) return status;
  if (!size) return INVALID;
  if (in_use[current] + size > MOST_BYTES) return NO_MEMORY;
  for (int i = 0; i < MOST; i++)
    if (!blocks[i].start) {
      void *block = aligned_alloc(256, (size + 255) / 256 * 256);
      memset(block, 0xFF, size);
      in_use[current] += size;
      blocks[i].start = *address = (Address)block, blocks[i].size = size, blocks[i].device = current;
      return OK;
    }
  return NO_MEMORY;
}
Status cuMemFreeAsync(Address address, void *stream) {
  Status status = here(stream);
  for (int i = 0; !status && i < MOST; i++)
    if (blocks[i].start == address && blocks[i].device == current) {
      in_use[current] -= blocks[i].size;
      free((void *)address);
      blocks[i].start = 0;
      return OK;
    }
  return status ? status : INVALID;
}
Status cuDevicePrimaryCtxRelease(int device) {
  for (int i = 0; i < MOST; i++)
    if (blocks[i].start && blocks[i].device == device) free((void *)blocks[i].start), blocks[i].start = 0;
  in_use[device] = failed[device] = 0;
  for (int i = 0; i < DEVICES; i++) is_open[i][device] = is_open[device][i] = 0;
  return OK;
}
Status cuPointerGetAttribute(void *value, int kind, Address address) {
  *(int *)value = owner(address, 1);
  return kind == 9 && owner(address, 1) >= 0 ? OK : INVALID;
}
Status cuMemAllocHost(void **address, size_t size) { *address = malloc(size); return current < 0 ? BAD_CONTEXT : OK; }
Status cuMemFreeHost(void *address) { free(address); return OK; }

Status cuMemcpyHtoDAsync(Address into, const void *from, size_t size, void *stream) {
  Status status = here(stream);
  if (!status) status = inside(current, into, size);
  if (!status) memcpy((void *)into, from, size);
  return status;
}
Status cuMemcpyDtoHAsync(void *into, Address from, size_t size, void *stream) {
  Status status = here(stream);
  if (!status) status = inside(current, from, size);
  if (!status) memcpy(into, (void *)from, size);
  return status;
}
Status cuMemcpyDtoDAsync(Address into, Address from, size_t size, void *stream) {
  Status status = here(stream);
  if (!status) status = inside(current, into, size);
  if (!status) status = inside(current, from, size);
  if (!status) memmove((void *)into, (void *)from, size);
  return status;
}
Status cuMemcpyPeerAsync(Address into, void *target, Address from, void *source, size_t size, void *stream) {
  Status status = here(stream);
  if (!status && (owner(into, size) != (intptr_t)target - 100 || owner(from, size) != (intptr_t)source - 100)) return INVALID;
  if (!status) memcpy((void *)into, (void *)from, size);
  return status;
}
static Status note(Node node) {
  Node *kept = malloc(sizeof node);
  *kept = node, kept->next = 0;
  if (noting[current]) last[current]->next = kept; else noting[current] = kept;
  last[current] = kept;
  return OK;
}
Status cuMemsetD8Async(Address into, unsigned char byte, size_t size, void *stream) {
  Status status = here(stream);
  if (!status) status = inside(current, into, size);
  if (status) return status;
  if (is_noting[current]) return note((Node){.into = into, .byte = byte, .size = size});
  memset((void *)into, byte, size);
  return OK;
}

Status cuStreamCreate(void **stream, unsigned flags) {
  if (current < 0) return BAD_CONTEXT;
  *stream = handle_on(current);
  return flags == 1 ? OK : INVALID;
}
Status cuStreamDestroy(void *stream) { return here(stream); }
Status cuStreamSynchronize(void *stream) { return here(stream); }
Status cuEventCreate(void **event, unsigned flags) {
  if (current < 0) return BAD_CONTEXT;
  *event = handle_on(current);
  return OK;
}
Status cuEventDestroy(void *event) { return OK; }
Status cuEventRecord(void *event, void *stream) { Status status = here(stream); return status ? status : here(event); }
Status cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return device_of(event) < 0 ? BAD_HANDLE : here(stream); }
Status cuEventQuery(void *event) { return device_of(event) < 0 ? BAD_HANDLE : failed[device_of(event)]; }
Status cuEventSynchronize(void *event) { return cuEventQuery(event); }
Status cuEventElapsedTime(float *milliseconds, void *start, void *end) { *milliseconds = 1.5; return OK; }

typedef struct { char name[32]; int arguments; } Kernel;
static Kernel kernels[] = {{"scale", 2}, {"add", 3}, {"check", 4}, {"grow", 3}, {"below", 3}};

// A module is the text of PTX or an ELF file, as NVIDIA's driver takes them.
Status cuModuleLoadData(void **module, const void *image) {
  const char *text = image;
  if (current < 0) return BAD_CONTEXT;
  if (memcmp(text, "\177ELF", 4) && !strstr(text, ".version")) return 200;
  *module = handle_on(current);
  return failed[current];
}
Status cuModuleUnload(void *module) { return here(module); }
Status cuModuleGetFunction(void **function, void *module, const char *name) {
  for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (!strcmp(kernels[i].name, name)) {
      *function = (void *)((current + 1) * (intptr_t)1000000 + 900000 + i);
      return here(module);
    }
  return NOT_FOUND;
}
Status cuFuncGetAttribute(int *value, int kind, void *function) {
  *value = kind == 4 ? 20 : kind == 3 ? 16 : kind == 1 ? 2048 : -1;  // registers, bytes of a thread's own, of a block
  return here(function);
}
Status cuFuncSetAttribute(void *function, int kind, int value) { return kind == 8 && value > 48 * 1024 ? here(function) : INVALID; }

static Status run(const Node *node) {
  const long long *v = node->values;
  if (node->size) { memset((void *)node->into, node->byte, node->size); return OK; }
  if (!strcmp(node->name, "scale")) {
    double *x = (double *)v[0];
    if (inside(current, v[0], 8 * v[1])) return OK;  // noticed later, as on a GPU
    for (long long i = 0; i < v[1] && i < (long long)node->grid * node->block; i++) x[i] *= 2;
  } else if (!strcmp(node->name, "add")) {
    double *x = (double *)v[0], *y = (double *)v[1];
    if (inside(current, v[0], 8 * v[2]) || inside(current, v[1], 8 * v[2])) return OK;
    for (long long i = 0; i < v[2] && i < (long long)node->grid * node->block; i++) y[i] += x[i];
  } else if (!strcmp(node->name, "check")) {
    double *x = (double *)v[0];
    long long *status = (long long *)v[2];
    for (long long i = 0; i < v[1] && !*status; i++)
      if (x[i] >= (double)v[3]) *status = 1;
  } else if (!strcmp(node->name, "grow")) {
    double *x = (double *)v[0];
    if (!*(long long *)v[1]) x[0] += (double)v[2];
  } else {
    *(unsigned char *)v[1] = *(double *)v[0] < (double)v[2];
  }
  return OK;
}
Status cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *stream, void **arguments, void **extra) {
  Status status = here(stream);
  if (!status) status = here(function);
  if (status) return status;
  if (!gx || !gy || !gz || bx * by * bz > 1024 || extra) return INVALID;
  const Kernel *kernel = &kernels[(intptr_t)function % 100000];
  Node node = {.grid = gx * gy * gz, .block = bx * by * bz};
  strcpy(node.name, kernel->name);
  for (int i = 0; i < kernel->arguments; i++) node.values[i] = *(long long *)arguments[i];
  return is_noting[current] ? note(node) : run(&node);
}

Status cuStreamBeginCapture(void *stream, int mode) {
  Status status = here(stream);
  if (!status) noting[current] = 0, is_noting[current] = 1;
  return status ? status : mode == 1 ? OK : INVALID;
}
Status cuStreamEndCapture(void *stream, void **graph) {
  Status status = here(stream);
  if (!status) *graph = noting[current], is_noting[current] = 0;
  return status;
}
Status cuGraphInstantiate(void **executable, void *graph, unsigned long long flags) { *executable = graph; return OK; }
Status cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) { *executable = graph; return OK; }
Status cuGraphDestroy(void *graph) { return OK; }
Status cuGraphExecDestroy(void *executable) { return OK; }
Status cuGraphLaunch(void *executable, void *stream) {
  Status status = here(stream);
  for (Node *node = executable; !status && node; node = node->next) status = run(node);
  return status;
}

Status cuGetErrorName(Status status, const char **name) {
  *name = status == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : status == BAD_ACCESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
        : status == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : status == BAD_HANDLE ? "CUDA_ERROR_INVALID_HANDLE"
        : status == INVALID ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR";
  return OK;
}
Status cuGetErrorString(Status status, const char **text) { *text = "as the fake says"; return OK; }
Status cuGetExportTable(const void **table, const void *id) { *table = 0; return NOT_FOUND; }
Status cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *outcome) {
  static void *self;
  if (!self) self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = self ? dlsym(self, name) : 0;
  if (outcome) *outcome = *function ? 0 : 1;
  return *function ? OK : NOT_FOUND;
}
Status cuGetProcAddress(const char *name, void **function, int version, uint64_t flags, int *outcome) {
  return cuGetProcAddress_v2(name, function, version, flags, outcome);
}
