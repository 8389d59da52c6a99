/* SPDX-License-Identifier: MIT */
/* Names for return addresses: those that the dynamic linker knows, and for the program itself those of its symbol
 * table, since a task is mostly a static function, and programs are mostly linked without -rdynamic. The table is read
 * from the file each time: this is for the last words of programs that hang. Nothing of the file is believed: what does
 * not lie in it is not looked at. */

#include "sys/symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/line.h"
#include "sys/spare.h"

static bool image_map(struct rs_image *image, const char *path)
{
        struct stat st;
        int fd = rs_spare_open(path);

        if (fd < 0)
                return false;
        bool ok = fstat(fd, &st) == 0 && st.st_size > 0;
        void *p = ok ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
        rs_spare_close(fd);
        *image = (struct rs_image){ .data = p, .size = ok ? (size_t)st.st_size : 0 };
        return p != MAP_FAILED;
}

/* n things of `size` bytes at offset, all of them in the file, and aligned; NULL: they are not. */
static const void *image_at(const struct rs_image *image, uint64_t offset, uint64_t n, size_t size)
{
        if (offset > image->size || n > (image->size - offset) / size || offset % _Alignof(uint64_t))
                return NULL;
        return image->data + offset;
}

static const ElfW(Sym) * find(const ElfW(Sym) * symbols, size_t n, uintptr_t value)
{
        for (size_t i = 0; i < n; i++)
                if ((symbols[i].st_info & 0xf) == STT_FUNC && value >= symbols[i].st_value &&
                    value - symbols[i].st_value < symbols[i].st_size)
                        return &symbols[i];
        return NULL;
}

/* The function at this address of the file, by its symbol table. */
static bool image_name(const struct rs_image *image, uintptr_t value, char *buf, size_t size, uintptr_t *ret_start)
{
        const ElfW(Ehdr) *h = image_at(image, 0, 1, sizeof *h);
        const ElfW(Shdr) *sections = h ? image_at(image, h->e_shoff, h->e_shnum, sizeof *sections) : NULL;

        for (unsigned i = 0; sections && i < h->e_shnum; i++) {
                const ElfW(Shdr) *s = &sections[i];
                if (s->sh_type != SHT_SYMTAB || s->sh_link >= h->e_shnum)
                        continue;
                size_t n = s->sh_size / sizeof(ElfW(Sym));
                const ElfW(Shdr) *names = &sections[s->sh_link];
                const ElfW(Sym) *symbols = image_at(image, s->sh_offset, n, sizeof *symbols);
                const ElfW(Sym) *symbol = symbols ? find(symbols, n, value) : NULL;
                if (!symbol || names->sh_offset > image->size || names->sh_size > image->size - names->sh_offset ||
                    symbol->st_name >= names->sh_size)
                        return false;
                uint64_t room = names->sh_size - symbol->st_name;
                snprintf(buf, size, "%.*s", (int)(room < size ? room : size),
                         image->data + names->sh_offset + symbol->st_name);
                *ret_start = symbol->st_value;
                return true;
        }
        return false;
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

/* What is added to the addresses of the file: its header lies in front of what was loaded. */
static uintptr_t bias_of(const Dl_info *info)
{
        const ElfW(Ehdr) *h = info->dli_fbase;

        return h->e_type == ET_EXEC ? 0 : (uintptr_t)info->dli_fbase;
}

/* What the file itself says of the address. */
struct described {
        char name[128], line[64]; /* "": it does not say */
        uintptr_t start;
};

/* Whether the file is the one that was loaded, and not one that has taken its place since: an update of the package. */
static bool is_loaded(const Dl_info *info, const struct rs_image *image)
{
        enum { HEAD = 4096 }; /* its headers, and mostly its build ID: read-only, and loaded with the first page */

        return memcmp(info->dli_fbase, image->data, image->size < HEAD ? image->size : HEAD) == 0;
}

static void describe(const Dl_info *info, const char *path, uintptr_t address, struct described *d)
{
        struct rs_image image;

        *d = (struct described){ 0 };
        if (!image_map(&image, path))
                return;
        bool ours = is_loaded(info, &image);
        if (!ours || !image_name(&image, address - bias_of(info), d->name, sizeof d->name, &d->start))
                d->name[0] = '\0';
        if (!ours || !rs_line_format(&image, address - bias_of(info), d->line, sizeof d->line))
                d->line[0] = '\0';
        d->start += bias_of(info);
        munmap((void *)(uintptr_t)image.data, image.size);
}

bool rs_symbol_format(const void *return_address, char *buf, size_t size)
{
        uintptr_t address = (uintptr_t)return_address;
        Dl_info info, ours, program;
        struct described d;

        /* It may lie behind the last instruction of its function. */
        if (!dladdr((const char *)return_address - 1, &info) || !info.dli_fname) {
                snprintf(buf, size, "%#" PRIxPTR, address);
                return true;
        }
        const char *module = base_name(info.dli_fname), *where;
        bool own = dladdr((void *)(uintptr_t)rs_symbol_format, &ours) && ours.dli_fbase == info.dli_fbase;
        bool main = dladdr((void *)getauxval(AT_ENTRY), &program) && program.dli_fbase == info.dli_fbase;
        describe(&info, main ? "/proc/self/exe" : info.dli_fname, address - 1, &d);
        if (own && !main)
                d.line[0] = '\0'; /* of use to those who build this library */
        where = d.line[0] ? d.line : module;
        if (own && !main && !info.dli_sname)
                return false;
        if (d.name[0])
                snprintf(buf, size, "%s+%#" PRIxPTR " (%s)", d.name, address - d.start, where);
        else if (info.dli_sname)
                snprintf(buf, size, "%s+%#" PRIxPTR " (%s)", info.dli_sname, address - (uintptr_t)info.dli_saddr,
                         where);
        else if (d.line[0])
                snprintf(buf, size, "%s (%s)", d.line, module);
        else
                snprintf(buf, size, "%s+%#" PRIxPTR, module, address - bias_of(&info));
        return true;
}
