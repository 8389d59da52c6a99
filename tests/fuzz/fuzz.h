/* SPDX-License-Identifier: MIT */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* What a fuzz target defines: tries one input, and aborts if what must always hold does not. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
