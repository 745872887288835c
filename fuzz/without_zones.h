// For targets that read names of time zones: the database is left out, so that an input takes the
// same path on every machine. Included once by a target.
#pragma once

#include <cstdlib>

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return ::setenv("TZDIR", "/nonexistent", 1);
}
