// Counts what a program allocates: LD_PRELOAD this, with a file of 8 bytes in WEIR_MALLOC_COUNT
// that is mapped and counted up, so that a watcher can read it at any moment without the program's
// help. For glibc, whose own functions have these second names.
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

static uint64_t before_mapping;
static uint64_t* counter = &before_mapping;

static void Count(void) {
  __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void Map(void) {
  const char* path = getenv("WEIR_MALLOC_COUNT");
  if (path == NULL) {
    return;
  }
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  void* mapped = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) {
    counter = mapped;
    __atomic_fetch_add(counter, before_mapping, __ATOMIC_RELAXED);
  }
}

void* malloc(size_t size) {
  Count();
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) {
  Count();
  return __libc_calloc(count, size);
}

void* realloc(void* old, size_t size) {
  Count();
  return __libc_realloc(old, size);
}

void* memalign(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) {
  Count();
  *result = __libc_memalign(alignment, size);
  return *result == NULL ? ENOMEM : 0;
}
