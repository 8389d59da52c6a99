/* SPDX-License-Identifier: MIT */
#ifndef RS_UNWIND_H
#define RS_UNWIND_H

/* Stacks of threads that are somewhere, from a copy of their memory: see unwind.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__LP64__)
#define RS_HAVE_UNWIND 1
enum { RS_DWARF_FP = 6, RS_DWARF_SP = 7, RS_DWARF_RA = 16, RS_DWARF_REGISTERS = 17 };
#elif defined(__aarch64__) && defined(__LP64__)
#define RS_HAVE_UNWIND 1
enum { RS_DWARF_FP = 29, RS_DWARF_SP = 31, RS_DWARF_RA = 30, RS_DWARF_REGISTERS = 32 };
#endif

#ifdef RS_HAVE_UNWIND

/* Registers of a context that was interrupted somewhere, by their DWARF numbers; bit n of known: number n is. */
struct rs_registers {
        uintptr_t pc, registers[RS_DWARF_REGISTERS];
        uint32_t known;
        bool returns; /* pc is where a call returns to, not the next instruction */
};

/* Of the context that a signal handler has interrupted: its third argument, a ucontext_t. Safe there. */
void rs_registers_take(struct rs_registers *ret, const void *ucontext);

/* Of a context that rs_switch() has saved. sp: what was stored in its *save; words: what lies there, RS_PARKED_WORDS of
 * them at least. */
enum { RS_PARKED_WORDS = 22 };
void rs_registers_parked(struct rs_registers *ret, uintptr_t sp, const uintptr_t *words);

static inline uintptr_t rs_code_address(uintptr_t ra)
{
#ifdef __aarch64__
        ra &= (UINT64_C(1) << 48) - 1; /* it may be signed */
#endif
        return ra;
}

/* Copies of pieces of its memory. */
struct rs_memory {
        struct rs_memory_part {
                uintptr_t low, high; /* where it lies in truth, 8-aligned */
                const uintptr_t *words;
        } parts[2];
        size_t n;
};

/* Its place and the return addresses above it, up to those in the function at `bottom` (not included; NULL: none). How
 * many. Nothing but the copies is read of its memory. */
size_t rs_unwind(const struct rs_registers *c, const struct rs_memory *m, const void *bottom,
                 const void **ret_addresses, size_t max);

#endif
#endif
