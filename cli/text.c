/* SPDX-License-Identifier: MIT */

/* Text that grows, and the few ways in which this program shows numbers to people. Growth doubles, so that a long text
 * costs a fixed number of copies of each byte. */

#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <resha/alloc.h>

void text_done(struct text *t)
{
        resha_free(t->data);
        *t = (struct text){ .data = NULL };
}

void text_clear(struct text *t)
{
        t->len = 0;
        t->failed = false;
        if (t->data)
                t->data[0] = '\0';
}

/* Room for `more` bytes and the 0 behind them. */
static bool text_reserve(struct text *t, size_t more)
{
        if (t->failed)
                return false;
        if (more < t->cap - t->len)
                return true;
        size_t need = t->len + more + 1;
        size_t cap = t->cap ? t->cap : 128;
        while (cap < need && cap <= SIZE_MAX / 2)
                cap *= 2;
        char *data = need > t->len && cap >= need ? resha_realloc(t->data, cap) : NULL;
        if (!data) {
                t->failed = true;
                return false;
        }
        t->data = data;
        t->cap = cap;
        return true;
}

void text_add(struct text *t, const void *data, size_t size)
{
        if (!text_reserve(t, size))
                return;
        if (size)
                memcpy(t->data + t->len, data, size);
        t->len += size;
        t->data[t->len] = '\0';
}

void text_puts(struct text *t, const char *s)
{
        text_add(t, s, strlen(s));
}

void text_putc(struct text *t, char c)
{
        text_add(t, &c, 1);
}

void text_printf(struct text *t, const char *format, ...)
{
        va_list ap;
        va_start(ap, format);
        int n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n < 0 || !text_reserve(t, (size_t)n)) {
                t->failed = true;
                return;
        }
        va_start(ap, format);
        vsnprintf(t->data + t->len, (size_t)n + 1, format, ap);
        va_end(ap);
        t->len += (size_t)n;
}

int text_write(const struct text *t, int fd)
{
        if (t->failed)
                return -ENOMEM;
        for (size_t done = 0; done < t->len;) {
                ssize_t n = write(fd, t->data + done, t->len - done);
                if (n >= 0)
                        done += (size_t)n;
                else if (errno != EINTR)
                        return -errno;
        }
        return 0;
}

const char *text_string(const struct text *t)
{
        return t->data ? t->data : "";
}

void text_add_grouped(struct text *t, uint64_t n)
{
        char digits[24];
        int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
        for (int i = 0; i < len; i++) {
                if (i && (len - i) % 3 == 0)
                        text_putc(t, ',');
                text_putc(t, digits[i]);
        }
}

void text_add_duration(struct text *t, resha_duration d)
{
        double s = (double)(d.ns < 0 ? 0 : d.ns) / 1e9;
        if (s < 0.095)
                text_printf(t, "%.3f s", s);
        else if (s < 0.995)
                text_printf(t, "%.2f s", s);
        else if (s < 59.95)
                text_printf(t, "%.1f s", s);
        else if (s < 3600)
                text_printf(t, "%d m %d s", (int)s / 60, (int)s % 60);
        else
                text_printf(t, "%lld h %d m", (long long)s / 3600, (int)((long long)s % 3600 / 60));
}

void text_add_size(struct text *t, uint64_t bytes)
{
        static const char *const units[] = { "kB", "MB", "GB", "TB" };
        if (bytes < 1000) {
                text_printf(t, "%d B", (int)bytes);
                return;
        }
        double v = (double)bytes / 1e3;
        size_t u = 0;
        for (; v >= 999.5 && u + 1 < sizeof units / sizeof units[0]; u++)
                v /= 1e3;
        text_printf(t, v < 99.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
}
