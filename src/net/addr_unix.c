/* SPDX-License-Identifier: MIT */
/* Addresses of the Unix family. The kernel knows three kinds: unnamed (nothing but the family), a path, and a name in
 * the abstract space, that begins with a zero byte and ends where the length says: it may hold any bytes. A path ends
 * at its zero byte or where the length says; callers and kernel differ in whether they count the zero byte. So what is
 * compared and printed is the name, never the sockaddr.
 *
 * Text, so that it can be read back whatever the bytes are:
 *
 *     /run/x.sock          a path that begins with a slash
 *     @name                an abstract name
 *     unix:x.sock          another path
 *     unix:                unnamed
 *
 * and in all of them \xNN for a byte that is a control character or a backslash, and for an @ that begins a path. */

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include <resha/error.h>

#include "net/addr.h"

enum kind { UNNAMED, PATH, ABSTRACT };

enum {
        HEAD = offsetof(struct sockaddr_un, sun_path),
        PATH_MAX_BYTES = sizeof((struct sockaddr_un *)0)->sun_path, /* without a zero byte */
        NAME_MAX_BYTES = PATH_MAX_BYTES - 1,                        /* abstract; paths that are made here */
};

struct name {
        enum kind kind;
        const char *bytes;
        size_t size;
};

_Static_assert(sizeof "unix:" + 4 * PATH_MAX_BYTES <= RESHA_ADDR_TEXT_MAX, "any Unix address fits as text");

static struct name name_in(const char *path, size_t size)
{
        if (size == 0)
                return (struct name){ .kind = UNNAMED };
        if (path[0] == '\0')
                return (struct name){ ABSTRACT, path + 1, size - 1 };
        return (struct name){ PATH, path, strnlen(path, size) };
}

static struct name name_of(const resha_addr *a)
{
        const struct rs_addr *view = rs_addr_view(a);
        size_t size = view->size > HEAD ? (size_t)view->size - HEAD : 0;

        return name_in((const char *)&view->sockaddr + HEAD, size < PATH_MAX_BYTES ? size : PATH_MAX_BYTES);
}

bool rs_addr_unix_path(const resha_addr *a, char path[static PATH_MAX_BYTES + 1])
{
        struct name n = name_of(a);

        if (n.kind != PATH)
                return false;
        memcpy(path, n.bytes, n.size);
        path[n.size] = '\0';
        return true;
}

/* n fits. */
static void make(struct name n, resha_addr *ret_addr)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };
        size_t size = HEAD;

        if (n.kind != UNNAMED) {
                memcpy(un.sun_path + (n.kind == ABSTRACT), n.bytes, n.size);
                size += n.size + 1; /* the zero byte, before or behind */
        }
        rs_addr_set(ret_addr, &un, size < sizeof un ? size : sizeof un);
}

int resha_addr_unix(const char *path, resha_addr *ret_addr)
{
        bool abstract = path && path[0] == '@';
        size_t size = path ? strlen(path) - abstract : 0;

        if (size == 0)
                return resha_fail_at(-EINVAL, NULL, "a Unix address without a name");
        if (size > NAME_MAX_BYTES)
                return resha_fail_at(-ENAMETOOLONG, NULL, "Unix address \"%s\" has %zu bytes; at most %d", path, size,
                                     NAME_MAX_BYTES);
        make((struct name){ abstract ? ABSTRACT : PATH, path + abstract, size }, ret_addr);
        return 0;
}

int rs_addr_unix_copy(const struct sockaddr *sa, size_t size, resha_addr *ret_addr)
{
        if (size < HEAD || size > HEAD + PATH_MAX_BYTES + 1) /* the kernel counts a zero byte that it has added */
                return -EINVAL;
        size -= HEAD;
        make(name_in((const char *)sa + HEAD, size < PATH_MAX_BYTES ? size : PATH_MAX_BYTES), ret_addr);
        return 0;
}

bool rs_addr_unix_equal(const resha_addr *a, const resha_addr *b)
{
        struct name x = name_of(a), y = name_of(b);

        return x.kind == y.kind && x.size == y.size && (x.size == 0 || memcmp(x.bytes, y.bytes, x.size) == 0);
}

/* ---- text ---- */

static bool is_escaped(const struct name *n, size_t i)
{
        unsigned char c = (unsigned char)n->bytes[i];

        return c < ' ' || c == 0x7f || c == '\\' || (c == '@' && i == 0 && n->kind == PATH);
}

void rs_addr_unix_format(const resha_addr *a, char text[static RESHA_ADDR_TEXT_MAX])
{
        static const char digits[16] = "0123456789abcdef";
        struct name n = name_of(a);
        const char *head = n.kind == ABSTRACT ? "@" : n.size && n.bytes[0] == '/' ? "" : "unix:";
        size_t to = strlen(head);

        memcpy(text, head, to);
        for (size_t i = 0; i < n.size; i++) {
                unsigned char c = (unsigned char)n.bytes[i];
                if (is_escaped(&n, i)) {
                        text[to++] = '\\';
                        text[to++] = 'x';
                        text[to++] = digits[c >> 4];
                        text[to++] = digits[c & 15];
                } else {
                        text[to++] = (char)c;
                }
        }
        text[to] = '\0';
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A byte of the text; how many characters it took, 0: a wrong escape. */
static size_t unescape(const char *text, char *ret)
{
        int high, low;

        if (text[0] != '\\') {
                *ret = text[0];
                return 1;
        }
        if (text[1] != 'x' || (high = hex_digit(text[2])) < 0 || (low = hex_digit(text[3])) < 0)
                return 0;
        *ret = (char)(high << 4 | low);
        return 4;
}

int rs_addr_unix_scan(const char *text, resha_addr *ret_addr)
{
        char bytes[PATH_MAX_BYTES];
        struct name n = { text[0] == '@' ? ABSTRACT : text[0] ? PATH : UNNAMED, bytes, 0 };
        size_t most = n.kind == ABSTRACT ? NAME_MAX_BYTES : PATH_MAX_BYTES;

        for (text += n.kind == ABSTRACT; *text;) {
                char c;
                size_t took = unescape(text, &c);
                if (took == 0 || (c == '\0' && n.kind == PATH))
                        return -EINVAL;
                if (n.size == most)
                        return -ENAMETOOLONG;
                bytes[n.size++] = c;
                text += took;
        }
        make(n, ret_addr);
        return 0;
}
