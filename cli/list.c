/* SPDX-License-Identifier: MIT */

/* A list, read through a buffer of our own: stdio would block the loop on a slow pipe, and the size of the list would
 * be the size of memory. The buffer holds [start, end); a line is searched from `scanned` on, so that a long line is
 * looked at once. */

#include "list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <resha/alloc.h>
#include <resha/error.h>
#include <resha/fd.h>

enum { LINE_MAX_SIZE = 65536 };

struct list {
        const char *name;
        int fd;
        bool regular, ended, skipping, begun;
        unsigned long number;
        size_t start, scanned, end;
        char buf[LINE_MAX_SIZE + 1];
};

int list_open(const char *path, struct list **ret_list)
{
        bool is_stdin = strcmp(path, "-") == 0;
        struct list *l = resha_malloc(sizeof *l);
        if (!l)
                return -ENOMEM;
        *l = (struct list){ .name = is_stdin ? "stdin" : path };
        l->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        struct stat st = { .st_mode = 0 };
        int error = l->fd < 0 || fstat(l->fd, &st) < 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
        l->regular = S_ISREG(st.st_mode);
        if (error) {
                int rc = resha_fail(-error, "%s: %s", l->name, strerror(error));
                list_free(l);
                return rc;
        }
        *ret_list = l;
        return 0;
}

void list_free(struct list *l)
{
        if (!l)
                return;
        if (l->fd > STDIN_FILENO)
                close(l->fd);
        resha_free(l);
}

void list_freep(struct list **l)
{
        list_free(*l);
        *l = NULL;
}

/* Reads more behind `end`: 1, 0 at the end, or negative. */
static int fill(struct list *l, bool wait)
{
        if (l->start) {
                memmove(l->buf, l->buf + l->start, l->end - l->start);
                l->scanned -= l->start;
                l->end -= l->start;
                l->start = 0;
        }
        if (!l->regular) {
                struct pollfd p = { .fd = l->fd, .events = POLLIN };
                int ready = poll(&p, 1, 0);
                if (ready == 0 && !wait)
                        return -EAGAIN;
                if (ready == 0 && (ready = resha_fd_wait(l->fd, POLLIN)) < 0)
                        return ready;
        }
        ssize_t n;
        do
                n = read(l->fd, l->buf + l->end, LINE_MAX_SIZE - l->end);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return resha_fail(-errno, "%s: %s", l->name, strerror(errno));
        l->end += (size_t)n;
        return n > 0;
}

bool list_clean(char **line, size_t *size)
{
        char *p = *line;
        size_t n = *size;
        while (n && (p[n - 1] == '\r' || p[n - 1] == ' ' || p[n - 1] == '\t'))
                n--;
        while (n && (*p == ' ' || *p == '\t'))
                p++, n--;
        *line = p;
        *size = n;
        return n && *p != '#';
}

/* Called after each read until the start is known: a mark may come in pieces. */
static int check_mark(struct list *l)
{
        const unsigned char *b = (const unsigned char *)l->buf;
        l->begun = l->ended || l->end >= 3 || (l->end && b[0] != 0xef && b[0] != 0xff && b[0] != 0xfe);
        if (l->end >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
                return resha_fail(-EILSEQ, "%s: is UTF-16; save it as UTF-8", l->name);
        if (l->end >= 3 && memcmp(b, "\xef\xbb\xbf", 3) == 0)
                l->start = l->scanned = 3;
        return 0;
}

/* The next raw line, without its end. 1, 0, or negative. */
static int raw_line(struct list *l, bool wait, char **ret_line, size_t *ret_size)
{
        for (;;) {
                char *nl = memchr(l->buf + l->scanned, '\n', l->end - l->scanned);
                if (nl || (l->ended && l->end > l->start)) {
                        size_t stop = nl ? (size_t)(nl - l->buf) : l->end;
                        *ret_line = l->buf + l->start;
                        *ret_size = stop - l->start;
                        l->buf[stop] = '\0';
                        l->start = l->scanned = nl ? stop + 1 : stop;
                        return 1;
                }
                if (l->ended)
                        return 0;
                l->scanned = l->end;
                if (l->end - l->start == LINE_MAX_SIZE) { /* drop it and go on to its end */
                        l->skipping = true;
                        l->start = l->scanned = l->end;
                }
                int rc = fill(l, wait);
                if (rc < 0)
                        return rc;
                l->ended = rc == 0;
                if (!l->begun && (rc = check_mark(l)) < 0)
                        return rc;
        }
}

int list_next(struct list *l, bool wait, const char **ret_line, size_t *ret_size, unsigned long *ret_number)
{
        char *line;
        size_t size;
        for (;;) {
                int rc = raw_line(l, wait, &line, &size);
                bool skipped = l->skipping && rc != -EAGAIN;
                if (rc < 0 || (rc == 0 && !skipped))
                        return rc;
                l->number++;
                l->skipping = false;
                *ret_number = l->number;
                if (skipped)
                        return -EMSGSIZE;
                if (!list_clean(&line, &size))
                        continue;
                line[size] = '\0';
                *ret_line = line;
                *ret_size = size;
                return 1;
        }
}

int64_t list_count(struct list *l)
{
        if (!l->regular)
                return -ESPIPE;
        off_t here = lseek(l->fd, 0, SEEK_CUR);
        struct list *copy = resha_malloc(sizeof *copy);
        if (here < 0 || !copy) {
                resha_free(copy);
                return -ESPIPE;
        }
        *copy = *l;
        int64_t n = 0;
        int rc;
        const char *line;
        size_t size;
        unsigned long number;
        while ((rc = list_next(copy, false, &line, &size, &number)) > 0 || rc == -EMSGSIZE)
                n++;
        resha_free(copy);
        return lseek(l->fd, here, SEEK_SET) < 0 || rc < 0 ? -ESPIPE : n;
}
