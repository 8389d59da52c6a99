/* SPDX-License-Identifier: MIT */
/* An unwinder for contexts that are somewhere: by the call frame information of .eh_frame (DWARF 5, 6.4), as the
 * compiler's runtime does it, but
 *
 *   - all of the other's memory that is read lies in copies: whatever garbage a frame leads to, nothing faults. The
 *     runtime's unwinder reads where it points to.
 *   - a register may be unknown. The kernel tells stack pointer and place of a thread that is in a call, not the frame
 *     pointer. Most of the C library needs none; what it has saved becomes known. Where a frame needs it and it is
 *     not, it is looked for, from the frame's lower end on: see guess_frame(). A wrong guess costs the frames above.
 *
 * The tables themselves are those of loaded code, found by the runtime, and believed as it does, though within their
 * lengths. What they may say and does not occur in them (DW_CFA_set_loc, indirect or unusual encodings) ends a
 * stack. */

#include "sys/unwind.h"

#ifdef RS_HAVE_UNWIND

#include <stdbool.h>
#include <string.h>

#include "sys/dwarf.h"

enum {
        WORD = sizeof(uintptr_t),
        REMEMBERED = 4,      /* rows of DW_CFA_remember_state */
        STACK = 16,          /* of an expression */
        FAR = 64 * 1024,     /* as far a frame pointer is looked for */
        TEXT_BEGINS = 65536, /* no code lies below */
};

/* ---- what is known of a function ---- */

struct rs_eh_bases {
        void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *pc, struct rs_eh_bases *bases);

struct code {
        uintptr_t start;
        struct rs_reader common, own; /* instructions of all functions of its kind, and its own */
        uint64_t code_align;
        int64_t data_align;
        unsigned ra;     /* the column of the return address */
        bool is_handler; /* what it was "called" by was interrupted */
};

static struct rs_reader entry_at(const uint8_t *p)
{
        struct rs_reader head = { p, p + 4, false };
        uint32_t length = (uint32_t)rs_read_fixed(&head, 4);

        return (struct rs_reader){ p + 4, p + 4 + (length < UINT32_MAX ? length : 0), length == UINT32_MAX };
}

/* Of a pointer of this encoding (DW_EH_PE_*); 0: of none that is read here. */
static unsigned size_of(uint8_t encoding)
{
        static const uint8_t sizes[16] = {
                [0x0] = WORD, [0x2] = 2, [0x3] = 4, [0x4] = 8, [0x8] = WORD, [0xa] = 2, [0xb] = 4, [0xc] = 8
        };

        return (encoding & 0x70) == 0x50 ? 0 : sizes[encoding & 0xf];
}

/* Letters behind the 'z': what the data of each is. False: what they say is not understood. */
static bool read_augmentation(struct code *c, struct rs_reader r, const char *letters, uint8_t *ret_encoding)
{
        for (; *letters && !r.bad; letters++) {
                uint8_t encoding = 0;
                if (strchr("RLP", *letters))
                        encoding = (uint8_t)rs_read_fixed(&r, 1);
                if (*letters == 'P')
                        rs_read_skip(&r, size_of(encoding));
                if (*letters == 'R')
                        *ret_encoding = encoding;
                else if (*letters == 'S')
                        c->is_handler = true;
                else if (!strchr("LPB", *letters) || (*letters == 'P' && !size_of(encoding)))
                        return false;
        }
        return !r.bad;
}

static bool read_common(struct code *c, struct rs_reader r, uint8_t *ret_encoding, bool *ret_sized)
{
        rs_read_skip(&r, 4);
        unsigned version = (unsigned)rs_read_fixed(&r, 1);
        const char *letters = rs_read_string(&r);
        if ((version != 1 && version != 3) || (*letters && *letters != 'z'))
                return false;
        c->code_align = rs_read_uleb(&r);
        c->data_align = rs_read_sleb(&r);
        c->ra = (unsigned)(version == 1 ? rs_read_fixed(&r, 1) : rs_read_uleb(&r));
        *ret_sized = *letters == 'z';
        if (*ret_sized) {
                uint64_t size = rs_read_uleb(&r);
                struct rs_reader data = r;
                rs_read_skip(&r, size);
                data.end = r.at;
                if (!read_augmentation(c, data, letters + 1, ret_encoding))
                        return false;
        }
        c->common = r;
        return !r.bad && c->ra == RS_DWARF_RA;
}

static bool find_code(uintptr_t pc, struct code *c)
{
        struct rs_eh_bases bases;
        const uint8_t *fde = pc >= TEXT_BEGINS ? _Unwind_Find_FDE((void *)pc, &bases) : NULL;
        uint8_t encoding = 0;
        bool sized;

        if (!fde)
                return false;
        *c = (struct code){ .start = (uintptr_t)bases.function };
        struct rs_reader r = entry_at(fde);
        const uint8_t *at = r.at;
        if (!read_common(c, entry_at(at - rs_read_signed(&r, 4)), &encoding, &sized) || !size_of(encoding))
                return false;
        rs_read_skip(&r, 2 * size_of(encoding));
        if (sized)
                rs_read_skip(&r, rs_read_uleb(&r));
        c->own = r;
        return !r.bad;
}

/* ---- where registers are, at a place in it ---- */

enum how { SAME, LOST, AT_OFFSET, OFFSET, REGISTER, AT_EXPRESSION, EXPRESSION };

struct rule {
        enum how how;
        int64_t n; /* offset to the frame's address, or number of a register */
        struct rs_reader expression;
};

struct row {
        struct rule frame; /* of its address: a register and an offset, or an expression */
        int64_t frame_offset;
        struct rule registers[RS_DWARF_REGISTERS];
};

struct table {
        const struct code *code;
        struct row now, first, remembered[REMEMBERED];
        unsigned n_remembered;
        uintptr_t location, target;
};

static void set(struct row *row, uint64_t number, enum how how, int64_t n)
{
        if (number < RS_DWARF_REGISTERS) /* vector registers are of no interest */
                row->registers[number] = (struct rule){ .how = how, .n = n };
}

static struct rs_reader block(struct rs_reader *r)
{
        uint64_t size = rs_read_uleb(r);
        struct rs_reader inner = *r;

        rs_read_skip(r, size);
        inner.end = r->at;
        return inner;
}

static void set_expression(struct row *row, struct rs_reader *r, enum how how)
{
        uint64_t number = rs_read_uleb(r);
        struct rs_reader expression = block(r);

        if (number < RS_DWARF_REGISTERS)
                row->registers[number] = (struct rule){ .how = how, .expression = expression };
}

static void set_frame(struct table *t, uint64_t number, int64_t offset)
{
        t->now.frame = (struct rule){ .how = REGISTER, .n = (int64_t)number };
        t->now.frame_offset = offset;
}

static void restore(struct table *t, uint64_t number)
{
        if (number < RS_DWARF_REGISTERS)
                t->now.registers[number] = t->first.registers[number];
}

static void remember(struct table *t, struct rs_reader *r, bool back)
{
        if (back ? t->n_remembered == 0 : t->n_remembered == REMEMBERED)
                r->bad = true;
        else if (back)
                t->now = t->remembered[--t->n_remembered];
        else
                t->remembered[t->n_remembered++] = t->now;
}

/* Those that have no operand in their first byte. */
static void instruction(struct table *t, struct rs_reader *r, uint8_t opcode)
{
        struct row *row = &t->now;
        const int64_t align = t->code->data_align;
        uint64_t n;

        switch (opcode) {
        case 0x00: break;                                                           /* nop */
        case 0x02: t->location += rs_read_fixed(r, 1) * t->code->code_align; break; /* advance_loc1 */
        case 0x03: t->location += rs_read_fixed(r, 2) * t->code->code_align; break;
        case 0x04: t->location += rs_read_fixed(r, 4) * t->code->code_align; break;
        case 0x05:
                n = rs_read_uleb(r);
                set(row, n, AT_OFFSET, (int64_t)rs_read_uleb(r) * align);
                break;
        case 0x06: restore(t, rs_read_uleb(r)); break;        /* restore_extended */
        case 0x07: set(row, rs_read_uleb(r), LOST, 0); break; /* undefined */
        case 0x08: set(row, rs_read_uleb(r), SAME, 0); break; /* same_value */
        case 0x09:
                n = rs_read_uleb(r);
                set(row, n, REGISTER, (int64_t)rs_read_uleb(r));
                break;
        case 0x0a: remember(t, r, false); break;
        case 0x0b: remember(t, r, true); break;
        case 0x0c:
                n = rs_read_uleb(r);
                set_frame(t, n, (int64_t)rs_read_uleb(r));
                break; /* def_cfa */
        case 0x0d: row->frame = (struct rule){ .how = REGISTER, .n = (int64_t)rs_read_uleb(r) }; break;
        case 0x0e: row->frame_offset = (int64_t)rs_read_uleb(r); break; /* def_cfa_offset */
        case 0x0f: row->frame = (struct rule){ .how = EXPRESSION, .expression = block(r) }; break;
        case 0x10: set_expression(row, r, AT_EXPRESSION); break;
        case 0x11:
                n = rs_read_uleb(r);
                set(row, n, AT_OFFSET, rs_read_sleb(r) * align);
                break;
        case 0x12:
                n = rs_read_uleb(r);
                set_frame(t, n, rs_read_sleb(r) * align);
                break;                                                 /* def_cfa_sf */
        case 0x13: row->frame_offset = rs_read_sleb(r) * align; break; /* def_cfa_offset_sf */
        case 0x14:
                n = rs_read_uleb(r);
                set(row, n, OFFSET, (int64_t)rs_read_uleb(r) * align);
                break;
        case 0x15:
                n = rs_read_uleb(r);
                set(row, n, OFFSET, rs_read_sleb(r) * align);
                break;
        case 0x16: set_expression(row, r, EXPRESSION); break;
        case 0x2d: break;                        /* RA is signed, or not */
        case 0x2e: (void)rs_read_uleb(r); break; /* GNU_args_size */
        case 0x2f:
                n = rs_read_uleb(r);
                set(row, n, AT_OFFSET, -((int64_t)rs_read_uleb(r) * align));
                break;
        default: r->bad = true;
        }
}

static bool run(struct table *t, struct rs_reader r)
{
        while (r.at < r.end && !r.bad && t->location <= t->target) {
                uint8_t byte = (uint8_t)rs_read_fixed(&r, 1), low = byte & 0x3f;
                switch (byte >> 6) {
                case 1: t->location += low * t->code->code_align; break;
                case 2: set(&t->now, low, AT_OFFSET, (int64_t)rs_read_uleb(&r) * t->code->data_align); break;
                case 3: restore(t, low); break;
                default: instruction(t, &r, byte);
                }
        }
        return !r.bad;
}

static bool find_row(struct table *t, const struct code *c, uintptr_t pc)
{
        *t = (struct table){ .code = c, .location = c->start, .target = UINTPTR_MAX };
        if (!run(t, c->common))
                return false;
        t->first = t->now;
        t->location = c->start;
        t->target = pc;
        return run(t, c->own);
}

/* ---- values ---- */

static bool read_word(const struct rs_memory *m, uintptr_t at, uintptr_t *ret)
{
        for (size_t i = 0; i < m->n; i++) {
                const struct rs_memory_part *p = &m->parts[i];
                if (at >= p->low && at < p->high && p->high - at >= WORD && at % WORD == 0) {
                        *ret = p->words[(at - p->low) / WORD];
                        return true;
                }
        }
        return false;
}

static bool read_register(const struct rs_registers *c, uint64_t number, uintptr_t *ret)
{
        if (number >= RS_DWARF_REGISTERS || !(c->known >> number & 1))
                return false;
        *ret = c->registers[number];
        return true;
}

static void set_register(struct rs_registers *c, unsigned number, uintptr_t value)
{
        c->registers[number] = value;
        c->known |= UINT32_C(1) << number;
}

struct operands {
        uintptr_t words[STACK];
        unsigned n;
        bool bad;
};

static void push(struct operands *o, uintptr_t v)
{
        if (o->n == STACK)
                o->bad = true;
        else
                o->words[o->n++] = v;
}

static uintptr_t pop(struct operands *o)
{
        if (o->n == 0)
                o->bad = true;
        return o->n ? o->words[--o->n] : 0;
}

/* Of two operands: what compilers and assemblers put into tables; those of linkage tables compare. */
static void two(struct operands *o, uint8_t opcode)
{
        uintptr_t b = pop(o), a = pop(o);

        switch (opcode) {
        case 0x1a: push(o, a & b); break;
        case 0x1c: push(o, a - b); break;
        case 0x1e: push(o, a * b); break;
        case 0x21: push(o, a | b); break;
        case 0x22: push(o, a + b); break;
        case 0x24: push(o, b < 64 ? a << b : 0); break;
        case 0x25: push(o, b < 64 ? a >> b : 0); break;
        case 0x29: push(o, a == b); break;
        case 0x2a: push(o, (intptr_t)a >= (intptr_t)b); break;
        case 0x2b: push(o, (intptr_t)a > (intptr_t)b); break;
        case 0x2c: push(o, (intptr_t)a <= (intptr_t)b); break;
        case 0x2d: push(o, (intptr_t)a < (intptr_t)b); break;
        case 0x2e: push(o, a != b); break;
        default: o->bad = true;
        }
}

static void operation(struct operands *o, struct rs_reader *r, uint8_t opcode, const struct rs_memory *m)
{
        uintptr_t v = 0;

        switch (opcode) {
        case 0x06:
                o->bad |= !read_word(m, pop(o), &v);
                push(o, v);
                break;                                  /* deref */
        case 0x08: push(o, rs_read_fixed(r, 1)); break; /* const1u */
        case 0x09: push(o, (uintptr_t)rs_read_signed(r, 1)); break;
        case 0x0a: push(o, rs_read_fixed(r, 2)); break;
        case 0x0b: push(o, (uintptr_t)rs_read_signed(r, 2)); break;
        case 0x0c: push(o, rs_read_fixed(r, 4)); break;
        case 0x0d: push(o, (uintptr_t)rs_read_signed(r, 4)); break;
        case 0x10: push(o, rs_read_uleb(r)); break;
        case 0x11: push(o, (uintptr_t)rs_read_sleb(r)); break;
        case 0x12:
                v = pop(o);
                push(o, v);
                push(o, v);
                break;                  /* dup */
        case 0x13: (void)pop(o); break; /* drop */
        case 0x23:
                v = pop(o);
                push(o, v + rs_read_uleb(r));
                break; /* plus_uconst */
        default: two(o, opcode);
        }
}

/* An expression; what it begins with is on its stack. False: it cannot be known. */
static bool evaluate(struct rs_reader r, struct operands *o, const struct rs_registers *c, const struct rs_memory *m,
                     uintptr_t *ret)
{
        while (r.at < r.end && !r.bad && !o->bad) {
                uint8_t opcode = (uint8_t)rs_read_fixed(&r, 1);
                uintptr_t v = 0;
                if (opcode >= 0x30 && opcode <= 0x4f) { /* lit */
                        push(o, opcode - 0x30u);
                } else if (opcode >= 0x70 && opcode <= 0x8f) { /* breg: the return address's is the place */
                        unsigned number = opcode - 0x70u;
                        if (number == RS_DWARF_RA && !(c->known >> number & 1))
                                v = c->pc;
                        else
                                o->bad |= !read_register(c, number, &v);
                        push(o, v + (uintptr_t)rs_read_sleb(&r));
                } else {
                        operation(o, &r, opcode, m);
                }
        }
        *ret = pop(o);
        return !r.bad && !o->bad;
}

/* ---- a frame pointer that is not known ---- */

enum call { NONE, OTHER, DIRECT };

/* Whether a call of the function at `start`, or of one that is not known there, lies in front of the address. */
#ifdef __x86_64__
static enum call call_before(uintptr_t address, const struct code *caller, uintptr_t start)
{
        const uint8_t *p = (const uint8_t *)address;
        size_t room = address - caller->start;
        int32_t distance;

        if (room >= 5 && p[-5] == 0xe8) {
                memcpy(&distance, p - 4, sizeof distance);
                return address + (uintptr_t)(intptr_t)distance == start ? DIRECT : OTHER;
        }
        for (int n = 2; n <= 7 && (size_t)n <= room; n++)
                if (p[-n] == 0xff && (p[1 - n] & 0x38) == 0x10)
                        return OTHER;
        return NONE;
}
#else
static enum call call_before(uintptr_t address, const struct code *caller, uintptr_t start)
{
        uint32_t word;

        if (address % 4 != 0 || address - caller->start < 4)
                return NONE;
        memcpy(&word, (const void *)(address - 4), sizeof word);
        if (word >> 26 == 0x25) {
                intptr_t distance = (intptr_t)(int32_t)(word << 6) >> 4;
                return address - 4 + (uintptr_t)distance == start ? DIRECT : OTHER;
        }
        return (word & 0xfffffc1f) == 0xd63f0000 ? OTHER : NONE;
}
#endif

/* Of a function that has been called from another stack, as the one that makes deep calls: the uppermost place there
 * where a call of it returns to. What calls have left that ended lies below. */
static uintptr_t guess_elsewhere(uintptr_t start, uintptr_t ra_at, const struct rs_memory *m)
{
        struct code caller;
        uintptr_t ra;

        for (size_t i = 1; i < m->n; i++)
                for (uintptr_t at = m->parts[i].high - ra_at - WORD; at >= m->parts[i].low; at -= WORD)
                        if (read_word(m, at + ra_at, &ra) && find_code(ra - 1, &caller) &&
                            call_before(ra, &caller, start) == DIRECT)
                                return at;
        return 0;
}

/* At which the return address and the caller's frame pointer lie at these distances: the lowest place above the frame's
 * lower end where a call of this very function returns to; or else where any call does, and the pointer leads up. What
 * calls have left there that ended is below the frame, and but for the function's own variables out of the way. */
static bool guess_frame(struct rs_registers *c, const struct row *row, uintptr_t start, const struct rs_memory *m)
{
        bool plain = row->frame.how == REGISTER;
        uintptr_t frame = plain ? (uintptr_t)row->frame_offset : 2 * WORD, second = 0, ra, fp;
        uintptr_t ra_at = frame + (uintptr_t)row->registers[RS_DWARF_RA].n;
        uintptr_t fp_at = frame + (uintptr_t)row->registers[RS_DWARF_FP].n, sp = c->registers[RS_DWARF_SP];
        struct code caller;

        for (uintptr_t at = sp; at < sp + FAR && read_word(m, at + ra_at, &ra); at += WORD) {
                enum call call = find_code(ra - 1, &caller) ? call_before(ra, &caller, start) : NONE;
                if (call == DIRECT) {
                        set_register(c, RS_DWARF_FP, at);
                        return true;
                }
                if (call == OTHER && !second && read_word(m, at + fp_at, &fp) && fp > at && read_word(m, fp, &fp))
                        second = at;
        }
        if (!second)
                second = guess_elsewhere(start, ra_at, m);
        if (second)
                set_register(c, RS_DWARF_FP, second);
        return second;
}

/* ---- from frame to frame ---- */

static bool frame_of(const struct row *row, const struct rs_registers *c, const struct rs_memory *m, uintptr_t *ret)
{
        struct operands o = { .n = 0 };

        if (row->frame.how == EXPRESSION)
                return evaluate(row->frame.expression, &o, c, m, ret);
        if (row->frame.how != REGISTER || !read_register(c, (uint64_t)row->frame.n, ret))
                return false;
        *ret += (uintptr_t)row->frame_offset;
        return true;
}

/* What the caller has in a register; false: that is not known. */
static bool value_of(const struct rule *rule, unsigned number, uintptr_t frame, const struct rs_registers *c,
                     const struct rs_memory *m, uintptr_t *ret)
{
        struct operands o = { .words = { frame }, .n = 1 };
        uintptr_t at = frame + (uintptr_t)rule->n;

        switch (rule->how) {
        case SAME: return read_register(c, number, ret);
        case AT_OFFSET: return read_word(m, at, ret);
        case OFFSET: *ret = at; return true;
        case REGISTER: return read_register(c, (uint64_t)rule->n, ret);
        case AT_EXPRESSION: return evaluate(rule->expression, &o, c, m, &at) && read_word(m, at, ret);
        case EXPRESSION: return evaluate(rule->expression, &o, c, m, ret);
        default: return false;
        }
}

/* To the caller. */
static bool step(struct rs_registers *c, const struct row *row, const struct code *code, const struct rs_memory *m)
{
        struct rs_registers caller = { .pc = 0 };
        uintptr_t frame, v;

        if (!frame_of(row, c, m, &frame) &&
            (c->known >> RS_DWARF_FP & 1 || !guess_frame(c, row, code->start, m) || !frame_of(row, c, m, &frame)))
                return false;
        set_register(&caller, RS_DWARF_SP, frame);
        for (unsigned i = 0; i < RS_DWARF_REGISTERS; i++)
                if ((i != RS_DWARF_SP || row->registers[i].how != SAME) &&
                    value_of(&row->registers[i], i, frame, c, m, &v))
                        set_register(&caller, i, v);
        if (!read_register(&caller, RS_DWARF_RA, &caller.pc))
                return false;
        caller.pc = rs_code_address(caller.pc);
        bool moves = caller.pc != c->pc || frame != c->registers[RS_DWARF_SP];
        *c = caller;
        return moves && c->pc;
}

size_t rs_unwind(const struct rs_registers *from, const struct rs_memory *m, const void *bottom,
                 const void **ret_addresses, size_t max)
{
        struct rs_registers c = *from;
        bool exact = !from->returns; /* the place is the next instruction, which may be the function's first */
        struct code code;
        struct table t;
        size_t n = 0;

        while (n < max && find_code(c.pc - !exact, &code) && code.start != (uintptr_t)bottom) {
                /* As a return address, which lies behind what it is about. */
                ret_addresses[n++] = (const void *)(c.pc + (exact && c.pc == code.start));
                if (!find_row(&t, &code, c.pc - !exact) || !step(&c, &t.now, &code, m))
                        break;
                exact = code.is_handler;
        }
        return n;
}

#endif
