/* SPDX-License-Identifier: MIT */
/* Names in records: any bytes, as one line that can be read, and short enough to leave room for the reason. And the
 * line itself: what was tried, with which name, why it failed, and what helps where that is not plain. */

#include "os/file.h"

static const char digits[16] = "0123456789abcdef";

static bool follows(const char *at, unsigned char least, unsigned char most)
{
        return (unsigned char)*at >= least && (unsigned char)*at <= most;
}

/* Of UTF-8: what steers a terminal or the direction of the text, or begins a line. */
static bool is_control(const char *at)
{
        const unsigned char *u = (const unsigned char *)at;

        if (u[0] == 0xc2)
                return u[1] < 0xa0; /* U+0080 to U+009F */
        if (u[0] != 0xe2 || u[1] < 0x80 || u[1] > 0x81)
                return false;
        return u[1] == 0x81 ? u[2] >= 0xa6 && u[2] <= 0xa9                                    /* U+2066 to U+2069 */
                            : (u[2] >= 0xa8 && u[2] <= 0xae) || u[2] == 0x8e || u[2] == 0x8f; /* U+2028 to U+202E */
}

/* The bytes of the character that begins there and can be printed as it is; 0: none does. */
static size_t printable(const char *at)
{
        unsigned char c = (unsigned char)*at;
        size_t n = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

        if (c < 0x80)
                return c >= ' ' && c != 0x7f && c != '\\' && c != '"';
        if (c < 0xc2 || c > 0xf4)
                return 0;
        if (!follows(at + 1, c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf))
                return 0;
        for (size_t i = 2; i < n; i++)
                if (!follows(at + i, 0x80, 0xbf))
                        return 0;
        return is_control(at) ? 0 : n;
}

/* What stands for the character or byte at *at takes so much; *at goes behind it. */
static size_t step(const char **at)
{
        size_t n = printable(*at);

        *at += n ? n : 1;
        return n ? n : 4;
}

static size_t text_size(const char *at)
{
        size_t size = 0;

        while (*at)
                size += step(&at);
        return size;
}

/* In at most `size` bytes, the 0 included. */
static const char *text_within(const char *path, char *buf, size_t size)
{
        size_t left = text_size(path);
        const char *at = path, *next;
        char *to = buf;

        *to++ = '"';
        if (left > size - 3) {
                while (left > size - 6)
                        left -= step(&at);
                memcpy(to, "...", 3);
                to += 3;
        }
        for (; *at; at = next) {
                next = at;
                size_t n = step(&next);
                if (printable(at)) {
                        memcpy(to, at, n);
                        to += n;
                        continue;
                }
                *to++ = '\\';
                *to++ = 'x';
                *to++ = digits[(unsigned char)*at >> 4];
                *to++ = digits[(unsigned char)*at & 15];
        }
        *to++ = '"';
        *to = '\0';
        return buf;
}

const char *rs_path_text(const char *path, char buf[static RS_PATH_TEXT])
{
        return text_within(path, buf, RS_PATH_TEXT);
}

int rs_path_check(const char *path, const char *verb)
{
        if (!path)
                return resha_fail_at(-EINVAL, NULL, "%s a file: its name is NULL", verb);
        if (!*path)
                return resha_fail_at(-ENOENT, NULL, "%s a file: its name is empty", verb);
        return 0;
}

/* What may help, or says it more plainly; "" where the code says all. */
static const char *remedy(int code)
{
        switch (code) {
        case -EAGAIN: return " (no thread for it can be started, ulimit -u, or another process has a lease of it)";
        case -EMFILE: return " (this process has as many descriptors as it may: ulimit -n)";
        case -ENFILE: return " (the system has as many files open as it may: sysctl fs.file-max)";
        case -ENOSPC: return " (the disk is full, or has no room for more names: df, df -i)";
        case -EDQUOT: return " (the owner has used what the disk grants)";
        case -EFBIG: return " (over the limit of this process, ulimit -f, or of the file system)";
        case -ENAMETOOLONG: return " (at most 255 bytes from one / to the next, and 4095 in all)";
        case -ELOOP: return " (symbolic links in a circle, or one where none is followed)";
        case -ETXTBSY: return " (a program that runs is in it)";
        case -EXDEV: return " (on another file system: resha_file_copy())";
        case -ENOTEMPTY: return " (remove what is in it first)";
        case -EPERM: return " (not by this user, or the file is immutable)";
        default: return "";
        }
}

int rs_path_failed(int code, const char *verb, const char *path)
{
        char text[RS_PATH_TEXT];

        if (code == -ECANCELED || code == -ETIME)
                return code;
        return resha_fail_at(code, NULL, "%s %s: %s%s", verb, rs_path_text(path, text), resha_strerror(code),
                             remedy(code));
}

int rs_path_failed_two(int code, const char *verb, const char *from, const char *to)
{
        enum { SHORTER = 72 }; /* two names, and still room for the reason */
        char a[SHORTER], b[SHORTER];

        if (code == -ECANCELED || code == -ETIME)
                return code;
        return resha_fail_at(code, NULL, "%s %s to %s: %s%s", verb, text_within(from, a, SHORTER),
                             text_within(to, b, SHORTER), resha_strerror(code), remedy(code));
}
