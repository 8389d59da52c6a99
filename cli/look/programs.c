/* SPDX-License-Identifier: MIT */

/* `resha ps` without a process: who can be asked. The folders of sockets are looked through, and each program is asked
 * for its loops, with little patience: one that does not answer is listed all the same. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <resha/alloc.h>

#include "exits.h"
#include "json.h"
#include "programs.h"
#include "table.h"
#include "view.h"

enum { MOST = 4096 };

struct pids {
        int *pid;
        size_t n, cap;
};

static void pids_done(struct pids *p)
{
        resha_free(p->pid);
}

static int pids_add(struct pids *p, int pid)
{
        if (p->n == p->cap) {
                size_t cap = p->cap ? 2 * p->cap : 16;
                int *more = resha_realloc(p->pid, cap * sizeof *more);
                if (!more)
                        return -ENOMEM;
                p->pid = more;
                p->cap = cap;
        }
        p->pid[p->n++] = pid;
        return 0;
}

/* "123.sock". */
static int pid_of(const char *name)
{
        char *end;
        long pid = name[0] >= '1' && name[0] <= '9' ? strtol(name, &end, 10) : 0;
        return pid > 0 && pid <= INT32_MAX && strcmp(end, ".sock") == 0 ? (int)pid : 0;
}

static int look_through(struct pids *p, const char *folder)
{
        DIR *dir = opendir(folder);
        const struct dirent *e;
        int rc = 0;
        while (dir && rc == 0 && p->n < MOST && (e = readdir(dir)))
                if (pid_of(e->d_name))
                        rc = pids_add(p, pid_of(e->d_name));
        if (dir)
                closedir(dir);
        return rc;
}

/* Root asks the programs of all users. */
static int find(struct pids *p)
{
        char path[64];
        int rc = 0;
        for (unsigned i = 0; rc == 0 && door_folder(geteuid(), i, path, sizeof path); i++)
                rc = look_through(p, path);
        static const char *const above[] = { "/run/user", "/tmp" };
        for (size_t i = 0; i < 2 && rc == 0 && geteuid() == 0; i++) {
                DIR *dir = opendir(above[i]);
                const struct dirent *e;
                while (dir && rc == 0 && (e = readdir(dir))) {
                        const char *number = i == 0                                 ? e->d_name
                                             : strncmp(e->d_name, "resha-", 6) == 0 ? e->d_name + 6
                                                                                    : "";
                        char *end;
                        unsigned long uid = strtoul(number, &end, 10);
                        if (end == number || *end || uid == 0 || uid > UINT32_MAX)
                                continue;
                        (void)door_folder((uid_t)uid, (unsigned)i, path, sizeof path);
                        rc = look_through(p, path);
                }
                if (dir)
                        closedir(dir);
        }
        return rc;
}

static int compare(const void *a, const void *b)
{
        int x = *(const int *)a, y = *(const int *)b;
        return x < y ? -1 : x > y;
}

/* How long it has been running, in ns; -1. */
static int64_t running_for(pid_t pid)
{
        char path[48], text[1024];
        struct timespec now;
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
                fclose(f);
        text[n] = '\0';
        const char *p = strrchr(text, ')');
        for (int field = 2; p && field < 22; field++)
                p = strchr(p + 1, ' ');
        if (!p || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
                return -1;
        double started = strtod(p, NULL) / (double)sysconf(_SC_CLK_TCK);
        double age = (double)now.tv_sec + (double)now.tv_nsec / 1e9 - started;
        return age < 0 ? 0 : (int64_t)(age * 1e9);
}

/* Only the lines about the whole are of interest; the rest is not waited for. */
static const char *ask(const struct process *p, struct snapshot *s)
{
        char *line;
        size_t size;
        int rc = 0;
        DOOR(d);
        if (door_open(&d, p, "ps", "snapshot loops") != EXIT_DONE)
                return "does not answer";
        d.patience = INT64_C(2000000000);
        while (!s->ended && (rc = door_line(&d, &line, &size)) > 0)
                if (snapshot_add(s, line, size) < 0)
                        return "answers in another way";
        return s->ended ? "" : rc < 0 ? "does not answer now" : "answers others";
}

static void add_json(const struct process *p, const struct snapshot *s, int64_t age, const char *trouble,
                     struct text *t)
{
        TEXT(line);
        text_puts(&line, "{");
        json_field_string(&line, "type", "program");
        json_field_int(&line, "pid", p->pid);
        json_field_string(&line, "program", p->name);
        json_field_int(&line, "uid", p->uid);
        if (age >= 0)
                json_field_int(&line, "age", age);
        if (s->ended)
                json_field_int(&line, "loops", (int64_t)s->loops.n);
        if (*trouble)
                json_field_string(&line, "trouble", trouble);
        text_puts(&line, "}\n");
        text_add(t, text_string(&line), line.len);
        t->failed |= line.failed;
}

static void add_row(const struct process *p, const struct snapshot *s, int64_t age, const char *trouble,
                    struct table *t)
{
        int64_t tasks = 0, blocked = 0;
        const struct screen ascii = { .ascii = true };
        for (size_t i = 0; i < s->loops.n; i++) {
                tasks += s->loops.row[i].tasks > 0 ? s->loops.row[i].tasks : 0;
                blocked += view_is_blocked(&s->loops.row[i]);
        }
        text_printf(&t->cells, "%d", (int)p->pid);
        table_cell(t);
        screen_add(&ascii, &t->cells, p->name);
        table_cell(t);
        if (s->ended)
                text_add_grouped(&t->cells, s->loops.n);
        table_cell(t);
        if (s->ended)
                text_add_grouped(&t->cells, (uint64_t)tasks);
        table_cell(t);
        screen_add_time(&t->cells, age);
        table_cell(t);
        if (*trouble)
                text_puts(&t->cells, p->state == 'T' ? "is stopped: kill -CONT lets it go on" : trouble);
        else if (blocked)
                text_printf(&t->cells, "%lld BLOCKED", (long long)blocked);
        table_cell(t);
}

int programs_list(const struct asked *a)
{
        static const char *const heads[] = { "-PID", "PROGRAM", "-LOOPS", "-TASKS", "-RUNS FOR", "STATE" };
        const struct screen screen = screen_here();
        struct pids pids RESHA_CLEANUP(pids_done) = { .n = 0 };
        TABLE(table);
        TEXT(t);
        t.failed = find(&pids) < 0;
        table_init(&table, heads, sizeof heads / sizeof heads[0]);
        if (pids.n)
                qsort(pids.pid, pids.n, sizeof *pids.pid, compare);
        for (size_t i = 0; i < pids.n; i++) {
                struct process p;
                SNAPSHOT(s);
                if ((i && pids.pid[i] == pids.pid[i - 1]) || process_look(pids.pid[i], &p) < 0)
                        continue;
                if (p.pid != pids.pid[i])
                        continue;
                const char *trouble = ask(&p, &s);
                if (a->json)
                        add_json(&p, &s, running_for(p.pid), trouble, &t);
                else
                        add_row(&p, &s, running_for(p.pid), trouble, &table);
        }
        table_add(&table, &screen, &t);
        if (!a->json && !table.n_cells)
                text_puts(&t, "no program of yours has an inspector: they start with RESHA_INSPECT=1\n");
        return asked_write(a, &t);
}
