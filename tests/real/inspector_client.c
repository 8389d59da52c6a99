/* SPDX-License-Identifier: MIT */
/* Clients of the inspector, raw and blocking. */

#include "inspector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void inspector_path(unsigned uid, int pid, char *ret_path, size_t size)
{
        char folder[64];
        struct stat st;

        snprintf(folder, sizeof folder, "/run/user/%u", uid);
        if (lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid)
                snprintf(ret_path, size, "%s/resha/%d.sock", folder, pid);
        else
                snprintf(ret_path, size, "/tmp/resha-%u/%d.sock", uid, pid);
}

int inspector_connect(unsigned uid, int pid)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        inspector_path(uid, pid, a.sun_path, sizeof a.sun_path);
        if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
                return fd;
        int code = -errno;
        close(fd);
        return code;
}

static char *read_to_end(int fd)
{
        size_t n = 0, room = 64 * 1024;
        char *text = resha_malloc(room);
        ssize_t got;

        while ((got = read(fd, text + n, room - n - 1)) > 0) {
                n += (size_t)got;
                if (room - n < 32 * 1024)
                        text = resha_realloc(text, room *= 2);
        }
        text[n] = '\0';
        return text;
}

char *inspector_ask(const char *line)
{
        int fd = inspector_connect(geteuid(), getpid());

        if (fd < 0)
                return NULL;
        (void)!send(fd, line, strlen(line), MSG_NOSIGNAL);
        char *text = read_to_end(fd);
        close(fd);
        return text;
}

static void *asks(void *arg)
{
        struct asker *a = arg;

        a->text = a->line ? inspector_ask(a->line) : read_to_end(a->fd);
        __atomic_store_n(&a->done, true, __ATOMIC_SEQ_CST);
        return NULL;
}

static void start(struct asker *a)
{
        ASSERT_EQ(pthread_create(&a->thread, NULL, asks, a), 0);
}

void asker_start(struct asker *a, const char *line)
{
        *a = (struct asker){ .line = line };
        start(a);
}

void asker_wait(struct asker *a)
{
        while (!__atomic_load_n(&a->done, __ATOMIC_SEQ_CST))
                ASSERT_OK(resha_sleep(RESHA_MS(1)));
        ASSERT_EQ(pthread_join(a->thread, NULL), 0);
        ASSERT_TRUE(a->text != NULL);
}

char *asker_text(const char *line)
{
        struct asker a;

        asker_start(&a, line);
        asker_wait(&a);
        return a.text;
}

void asker_start_rest(struct asker *a, int fd)
{
        *a = (struct asker){ .fd = fd };
        start(a);
}

char *asker_rest(int fd)
{
        struct asker a;

        asker_start_rest(&a, fd);
        asker_wait(&a);
        return a.text;
}

size_t inspector_count(const char *text, const char *part)
{
        size_t n = 0;

        for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
                n++;
        return n;
}

long long inspector_number(const char *text, const char *part, const char *key)
{
        const char *at = strstr(text, part);
        char quoted[64];

        if (!at)
                return -1;
        while (at > text && at[-1] != '\n')
                at--;
        snprintf(quoted, sizeof quoted, "\"%s\":", key);
        const char *found = strstr(at, quoted);
        return found && found < at + strcspn(at, "\n") ? strtoll(found + strlen(quoted), NULL, 10) : -1;
}

void assert_whole(const char *text)
{
        static const char end[] = "{\"type\":\"end\",\"ok\":true}\n";
        size_t n = strlen(text);

        if (n < sizeof end || strcmp(text + n - sizeof end + 1, end) != 0)
                FAIL("no end: ...%s", text + (n > 300 ? n - 300 : 0));
}

void inspector_run(resha_fn *fn, void *arg)
{
        ASSERT_OK(test_run_opts(fn, arg, &(resha_run_opts){ .inspect = true }));
}

/* Not by a jump to the call: it stands in the stack. */
int inspector_sleeps(void *arg)
{
        (void)arg;
        int rc = resha_sleep(RESHA_S(100));
        __asm__ volatile("" ::: "memory");
        return rc;
}

int inspector_answers(void *arg)
{
        (void)arg;
        char *text = asker_text("snapshot\n");
        assert_whole(text);
        ASSERT_EQ(inspector_number(text, "\"type\":\"resha\"", "loops"), 1);
        ASSERT_EQ(inspector_count(text, "\"type\":\"loop\""), 1);
        resha_free(text);
        return 0;
}
