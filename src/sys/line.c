/* SPDX-License-Identifier: MIT */
/* Lines of addresses: the line number programs of DWARF 2 to 5 (section 6.2 of each), as compilers put them into
 * .debug_line, run until one covers the address. Only the file itself is read, not one that lies elsewhere, and nothing
 * that is compressed, or so large that it would take long. Nothing of it is believed: each read is within the section,
 * and ends all if it is not. */

#include "sys/line.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "sys/dwarf.h"

/* ---- sections ---- */

static struct rs_reader section(const struct rs_image *image, const char *name)
{
        const ElfW(Ehdr) *h = (const void *)image->data;
        struct rs_reader none = { .bad = true };

        if (image->size < sizeof *h || h->e_shoff > image->size || h->e_shoff % 8 ||
            h->e_shnum > (image->size - h->e_shoff) / sizeof(ElfW(Shdr)) || h->e_shstrndx >= h->e_shnum)
                return none;
        const ElfW(Shdr) *s = (const void *)(image->data + h->e_shoff), *names = &s[h->e_shstrndx];
        for (unsigned i = 0; i < h->e_shnum; i++) {
                if (names->sh_offset > image->size || s[i].sh_name >= names->sh_size ||
                    names->sh_size > image->size - names->sh_offset)
                        return none;
                if (strncmp(image->data + names->sh_offset + s[i].sh_name, name, names->sh_size - s[i].sh_name) != 0)
                        continue;
                if (s[i].sh_flags & SHF_COMPRESSED || s[i].sh_type == SHT_NOBITS || s[i].sh_offset > image->size ||
                    s[i].sh_size > image->size - s[i].sh_offset)
                        return none;
                const uint8_t *data = (const uint8_t *)image->data + s[i].sh_offset;
                return (struct rs_reader){ data, data + s[i].sh_size, false };
        }
        return none;
}

static const char *string_at(const struct rs_image *image, const char *name, uint64_t offset)
{
        struct rs_reader r = section(image, name);

        if (r.bad)
                return "";
        rs_read_skip(&r, offset);
        return r.bad ? "" : rs_read_string(&r);
}

/* ---- one unit ---- */

enum { FORMS_MAX = 16, LINES_MAX = 64 * 1024 * 1024 /* bytes; a third of a second for an address */ };

struct unit {
        const struct rs_image *image;
        struct rs_reader program, files;
        unsigned version, offset_size, address_size;
        uint8_t min_length, line_range, opcode_base;
        int8_t line_base;
        const uint8_t *lengths; /* of the standard opcodes */
};

/* One field of a table of files (DWARF 5, 6.2.4.1). A text if it is wanted, or NULL. */
static const char *field(struct unit *u, struct rs_reader *r, uint64_t form, bool wanted)
{
        const char *section_name = NULL;

        switch (form) {
        case 0x08: return rs_read_string(r);                /* string */
        case 0x1f: section_name = ".debug_line_str"; break; /* line_strp */
        case 0x0e: section_name = ".debug_str"; break;      /* strp */
        case 0x0b: rs_read_skip(r, 1); break;               /* data1 */
        case 0x05: rs_read_skip(r, 2); break;
        case 0x06: rs_read_skip(r, 4); break;
        case 0x07: rs_read_skip(r, 8); break;
        case 0x1e: rs_read_skip(r, 16); break;              /* data16 */
        case 0x0f: (void)rs_read_uleb(r); break;            /* udata */
        case 0x09: rs_read_skip(r, rs_read_uleb(r)); break; /* block */
        default: r->bad = true;
        }
        uint64_t offset = section_name ? rs_read_fixed(r, u->offset_size) : 0;
        return section_name && wanted ? string_at(u->image, section_name, offset) : NULL;
}

/* A table of version 5; the name of entry `wanted`, and what follows the table in r. */
static const char *table(struct unit *u, struct rs_reader *r, uint64_t wanted)
{
        uint64_t forms[FORMS_MAX][2];
        unsigned n_forms = (unsigned)rs_read_fixed(r, 1);
        const char *name = NULL;

        if (n_forms > FORMS_MAX)
                r->bad = true;
        for (unsigned i = 0; i < n_forms && !r->bad; i++) {
                forms[i][0] = rs_read_uleb(r);
                forms[i][1] = rs_read_uleb(r);
        }
        uint64_t n = rs_read_uleb(r);
        if (n_forms == 0)
                n = 0; /* entries of nothing: as many as it likes */
        for (uint64_t k = 0; k < n && !r->bad; k++)
                for (unsigned i = 0; i < n_forms && !r->bad; i++) {
                        bool is_name = k == wanted && forms[i][0] == 1; /* DW_LNCT_path */
                        const char *text = field(u, r, forms[i][1], is_name);
                        if (is_name)
                                name = text;
                }
        return name;
}

static const char *file_name(struct unit *u, uint64_t file)
{
        struct rs_reader r = u->files;

        if (u->version >= 5) {
                (void)table(u, &r, UINT64_MAX); /* folders */
                return table(u, &r, file);
        }
        while (!r.bad && *rs_read_string(&r))
                ; /* folders */
        for (uint64_t i = 1; !r.bad; i++) {
                const char *name = rs_read_string(&r);
                if (!*name)
                        return NULL;
                if (i == file)
                        return name;
                (void)rs_read_uleb(&r), (void)rs_read_uleb(&r), (void)rs_read_uleb(&r);
        }
        return NULL;
}

/* The header. r: behind the length of the unit, up to its end. */
static bool unit_open(struct unit *u, struct rs_reader r)
{
        u->version = (unsigned)rs_read_fixed(&r, 2);
        if (u->version < 2 || u->version > 5)
                return false;
        u->address_size = sizeof(void *);
        if (u->version >= 5) {
                u->address_size = (unsigned)rs_read_fixed(&r, 1);
                rs_read_skip(&r, 1);
        }
        uint64_t header = rs_read_fixed(&r, u->offset_size);
        u->program = r;
        rs_read_skip(&u->program, header);
        u->min_length = (uint8_t)rs_read_fixed(&r, 1);
        if (u->version >= 4)
                rs_read_skip(&r, 1);
        rs_read_skip(&r, 1);
        u->line_base = (int8_t)rs_read_fixed(&r, 1);
        u->line_range = (uint8_t)rs_read_fixed(&r, 1);
        u->opcode_base = (uint8_t)rs_read_fixed(&r, 1);
        u->lengths = r.at;
        rs_read_skip(&r, u->opcode_base ? u->opcode_base - 1u : 0);
        u->files = r;
        u->files.end = u->program.at;
        return !r.bad && !u->program.bad && u->files.at <= u->files.end && u->line_range && u->opcode_base;
}

struct row {
        uint64_t address, file, line;
};

struct machine {
        struct row now, before; /* before.line 0: a sequence begins */
        uint64_t wanted;
        bool found, gone; /* gone: the linker has dropped the code of this sequence, and has put 0 for its address */
};

/* A row is there. It ends what the one before covers. */
static void emit(struct machine *m, bool ends)
{
        m->found = !m->gone && m->before.line && m->before.address <= m->wanted && m->wanted < m->now.address;
        if (!m->found)
                m->before = ends ? (struct row){ 0 } : m->now;
}

static void extended(const struct unit *u, struct rs_reader *r, struct machine *m)
{
        uint64_t length = rs_read_uleb(r);
        struct rs_reader inner = *r;

        rs_read_skip(r, length);
        inner.end = r->at;
        switch (length ? rs_read_fixed(&inner, 1) : 0) {
        case 1: /* DW_LNE_end_sequence */
                emit(m, true);
                m->now = (struct row){ .file = 1, .line = 1 };
                m->gone = false;
                break;
        case 2: /* DW_LNE_set_address */
                m->now.address = rs_read_fixed(&inner, u->address_size);
                m->gone = m->now.address == 0;
                break;
        default: break;
        }
}

static void standard(const struct unit *u, struct rs_reader *r, struct machine *m, uint8_t opcode)
{
        switch (opcode) {
        case 1: /* copy */ emit(m, false); break;
        case 2: /* advance_pc */ m->now.address += rs_read_uleb(r) * u->min_length; break;
        case 3: /* advance_line */ m->now.line += (uint64_t)rs_read_sleb(r); break;
        case 4: /* set_file */ m->now.file = rs_read_uleb(r); break;
        case 8: /* const_add_pc */
                m->now.address += (255u - u->opcode_base) / u->line_range * (uint64_t)u->min_length;
                break;
        case 9: /* fixed_advance_pc */ m->now.address += rs_read_fixed(r, 2); break;
        default:
                for (unsigned i = 0; i < u->lengths[opcode - 1]; i++)
                        (void)rs_read_uleb(r);
        }
}

/* Runs the program of a unit. True: m->before covers the address. */
static bool unit_run(const struct unit *u, struct machine *m)
{
        struct rs_reader r = u->program;

        m->now = (struct row){ .file = 1, .line = 1 };
        m->before = (struct row){ 0 };
        while (!m->found && !r.bad && r.at < r.end) {
                uint8_t opcode = (uint8_t)rs_read_fixed(&r, 1);
                if (opcode >= u->opcode_base) {
                        unsigned by = opcode - u->opcode_base;
                        m->now.address += by / u->line_range * (uint64_t)u->min_length;
                        m->now.line += (uint64_t)(int64_t)(u->line_base + (int)(by % u->line_range));
                        emit(m, false);
                } else if (opcode == 0) {
                        extended(u, &r, m);
                } else {
                        standard(u, &r, m, opcode);
                }
        }
        return m->found;
}

bool rs_line_format(const struct rs_image *image, uintptr_t address, char *buf, size_t size)
{
        struct rs_reader r = section(image, ".debug_line");

        if (r.end - r.at > LINES_MAX)
                return false;
        while (!r.bad && r.at < r.end) {
                struct unit u = { .image = image, .offset_size = 4 };
                struct machine m = { .wanted = address };
                uint64_t length = rs_read_fixed(&r, 4);
                if (length == 0xffffffff) {
                        length = rs_read_fixed(&r, 8);
                        u.offset_size = 8;
                }
                struct rs_reader inner = r;
                rs_read_skip(&r, length);
                inner.end = r.at;
                if (r.bad || !unit_open(&u, inner) || !unit_run(&u, &m))
                        continue;
                const char *name = file_name(&u, m.before.file), *slash = name ? strrchr(name, '/') : NULL;
                if (!name || !*name)
                        return false;
                snprintf(buf, size, "%s:%llu", slash ? slash + 1 : name, (unsigned long long)m.before.line);
                return true;
        }
        return false;
}
