/* SPDX-License-Identifier: MIT */
/* Names in records: any bytes, as one line that can be read, and short enough to leave room for the reason. And the
 * line itself: what was tried, with which name, why it failed, and what helps where that is not plain. */

#include "os/file.h"

static const char digits[16] = "0123456789abcdef";

static bool is_plain(unsigned char c)
{
        return c >= ' ' && c != 0x7f && c != '\\' && c != '"';
}

/* Where the text of the last bytes of path begins that fit into `room`. UTF-8 is not cut within a character. */
static const char *tail(const char *path, size_t room)
{
        const char *at = path + strlen(path);
        size_t used = 0;

        while (at > path) {
                size_t more = is_plain((unsigned char)at[-1]) ? 1 : 4;
                if (used + more > room)
                        break;
                used += more;
                at--;
        }
        while (at > path && ((unsigned char)*at & 0xc0) == 0x80)
                at++;
        return at;
}

/* In at most `size` bytes, the 0 included. */
static const char *text_within(const char *path, char *buf, size_t size)
{
        const char *all = tail(path, size - 3);
        const char *at = all == path ? path : tail(path, size - 6);
        char *to = buf;

        *to++ = '"';
        if (at != path) {
                memcpy(to, "...", 3);
                to += 3;
        }
        for (; *at; at++) {
                unsigned char c = (unsigned char)*at;
                if (is_plain(c)) {
                        *to++ = (char)c;
                        continue;
                }
                *to++ = '\\';
                *to++ = 'x';
                *to++ = digits[c >> 4];
                *to++ = digits[c & 15];
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
