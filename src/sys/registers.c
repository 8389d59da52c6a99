/* SPDX-License-Identifier: MIT */
/* Where an unwinder begins: registers of contexts that do not run, by the numbers that DWARF gives them. */

#include <string.h>
#include <ucontext.h>

#include "sys/unwind.h"

#ifdef RS_HAVE_UNWIND

void rs_registers_take(struct rs_registers *ret, const void *ucontext)
{
        const mcontext_t *m = &((const ucontext_t *)ucontext)->uc_mcontext;

#ifdef __x86_64__
        static const int names[RS_DWARF_RA] = {
                REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15
        };

        *ret = (struct rs_registers){ .pc = (uintptr_t)m->gregs[REG_RIP], .known = 0xffff };
        for (unsigned i = 0; i < RS_DWARF_RA; i++)
                ret->registers[i] = (uintptr_t)m->gregs[names[i]];
#else
        *ret = (struct rs_registers){ .pc = m->pc, .known = UINT32_MAX };
        for (unsigned i = 0; i <= RS_DWARF_RA; i++)
                ret->registers[i] = m->regs[i];
        ret->registers[RS_DWARF_SP] = m->sp;
#endif
}

/* As save_state of switch_*.S has put them. */
#ifdef __x86_64__
static const uint8_t saved[] = { 15, 14, 13, 12, 3, 6, RS_DWARF_RA };
enum { FIRST = 1, WORDS = 8 };
#else
static const uint8_t saved[] = { 29, 30, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
enum { FIRST = 0, WORDS = 22 };
#endif

void rs_registers_parked(struct rs_registers *ret, uintptr_t sp, const uintptr_t *words)
{
        *ret = (struct rs_registers){ .returns = true, .known = UINT32_C(1) << RS_DWARF_SP };
        ret->registers[RS_DWARF_SP] = sp + WORDS * sizeof *words;
        for (unsigned i = 0; i < sizeof saved; i++) {
                ret->registers[saved[i]] = words[FIRST + i];
                ret->known |= UINT32_C(1) << saved[i];
        }
        ret->pc = rs_code_address(ret->registers[RS_DWARF_RA]);
}

#endif
