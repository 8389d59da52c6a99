/* SPDX-License-Identifier: MIT */

/* `resha trace`: what all tasks do for a time, for a viewer of traces. It is written beside its place and takes its
 * name when it is whole: what has the name can be opened. */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exits.h"
#include "help.h"
#include "interrupt.h"
#include "look.h"
#include "screen.h"
#include "view.h"

static int fail(const struct asked *a, const char *name, const char *what)
{
        TEXT(why);
        screen_add(&(struct screen){ .ascii = true }, &why, name);
        text_puts(&why, ": ");
        text_puts(&why, what);
        asked_say(a, &why);
        return EXIT_CANNOT_WRITE;
}

/* Under its own name only if there is none, unless told so: also if one has come meanwhile. */
static int give_name(const struct asked *a, const char *part)
{
        if (!a->force && link(part, a->output) == 0) {
                unlink(part);
                return EXIT_DONE;
        }
        struct stat st;
        bool there = !a->force && (errno == EEXIST || lstat(a->output, &st) == 0); /* not every disk knows links */
        if (there || rename(part, a->output) < 0) {
                int rc = fail(a, a->output, there ? "is there already; -f replaces it" : strerror(errno));
                unlink(part);
                return rc;
        }
        return EXIT_DONE;
}

/* Devices and pipes: there is nothing in them to be replaced, and they keep their names. */
static bool is_special(const char *name)
{
        struct stat st;
        return stat(name, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int trace_to_special(const struct asked *a, struct question *q)
{
        int fd = open(a->output, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return fail(a, a->output, strerror(errno));
        int rc = view_pass(a, q, fd);
        close(fd);
        return rc;
}

static int trace_to_file(const struct asked *a, struct question *q)
{
        struct stat st;
        TEXT(part);
        TEXT(said);
        if (!a->force && lstat(a->output, &st) == 0)
                return fail(a, a->output, "is there already; -f replaces it");
        text_printf(&part, "%s.%d.part", a->output, (int)getpid());
        int fd = part.failed ? -1 : open(part.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0)
                return fail(a, a->output, part.failed ? "out of memory" : strerror(errno));
        int rc = view_pass(a, q, fd);
        off_t size = lseek(fd, 0, SEEK_CUR);
        if (close(fd) < 0 && rc == EXIT_DONE)
                rc = fail(a, a->output, strerror(errno));
        if (rc != EXIT_DONE) {
                unlink(part.data);
                return rc;
        }
        rc = give_name(a, part.data);
        if (rc != EXIT_DONE)
                return rc;
        screen_add(&(struct screen){ .ascii = true }, &said, a->output);
        text_puts(&said, ": ");
        text_add_size(&said, size > 0 ? (uint64_t)size : 0);
        text_puts(&said, "; open it at https://ui.perfetto.dev or in chrome://tracing");
        asked_say(a, &said);
        return EXIT_DONE;
}

/* One line for each, which are whole. */
static void say_notes(const struct asked *a, const struct text *notes)
{
        TEXT(line);
        const char *p = text_string(notes);
        for (const char *nl; (nl = strchr(p, '\n')); p = nl + 1) {
                text_clear(&line);
                text_add(&line, p, (size_t)(nl - p));
                asked_say(a, &line);
        }
}

int trace_main(int argc, char **argv)
{
        struct asked a;
        char request[48], real[PATH_MAX];
        int rc;
        TEXT(why);
        TEXT(notes);
        if (!asked_begin(&a, "trace", help_trace, argc, argv, &rc))
                return rc;
        snprintf(request, sizeof request, "trace %lld", (long long)(a.time.ns / 1000000));
        struct question q = { .request = request, .takes = a.time.ns, .form = ANSWER_JSON, .notes = &notes };
        interrupt_catch();
        if (a.force && realpath(a.output, real)) /* a link stays, what it leads to is replaced */
                a.output = real;
        if (strcmp(a.output, "-") == 0)
                rc = view_pass(&a, &q, STDOUT_FILENO);
        else if (is_special(a.output))
                rc = trace_to_special(&a, &q);
        else
                rc = trace_to_file(&a, &q);
        if (rc == EXIT_DONE)
                say_notes(&a, &notes);
        if (rc == EXIT_INTERRUPTED) {
                text_puts(&why, "interrupted: nothing was kept");
                asked_say(&a, &why);
        }
        return rc;
}
