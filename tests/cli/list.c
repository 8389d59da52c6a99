/* SPDX-License-Identifier: MIT */

/* Lists: blank lines, comments, CRLF, byte order marks, long lines, pipes that drip. */

#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "list.h"
#include "text.h"

static char path[64];

static void write_file(const void *data, size_t size)
{
        snprintf(path, sizeof path, "/tmp/resha-list-%d", (int)getpid());
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ASSERT_EQ(write(fd, data, size), (ssize_t)size);
        close(fd);
}

/* All entries as "number:text;", and what ended it. */
static void read_all(struct text *t, const char *name)
{
        struct list *l = NULL;
        const char *line;
        size_t size;
        unsigned long number;
        ASSERT_OK(list_open(name, &l));
        int64_t count = list_count(l), n = 0;
        int rc;
        while ((rc = list_next(l, true, &line, &size, &number)) > 0 || rc == -EMSGSIZE) {
                text_printf(t, rc > 0 ? "%lu:%s;" : "%lu:too long;", number, rc > 0 ? line : "");
                n++;
        }
        text_printf(t, "%d", rc);
        if (rc == 0 && count != -ESPIPE)
                ASSERT_EQ(count, n);
        list_free(l);
}

static void expect(const char *data, size_t size, const char *entries)
{
        TEXT(t);
        write_file(data, size);
        read_all(&t, path);
        unlink(path);
        ASSERT_STR(text_string(&t), entries);
}

/* A literal with all its bytes. */
#define EXPECT(data, entries) expect(data, sizeof data - 1, entries)

TEST(list_skips_blank_lines_and_comments)
{
        EXPECT("a\n\n  # no\n\t b \n#c\nd", "1:a;4:b;6:d;0");
        EXPECT("", "0");
        EXPECT("\n\n\n", "0");
        EXPECT("a#b\n", "1:a#b;0");
}

TEST(list_takes_crlf_and_marks)
{
        EXPECT("\xef\xbb\xbf"
               "a\r\nb\r\n\r\n",
               "1:a;2:b;0");
        EXPECT("\xef\xbb\xbf", "0");
        EXPECT("x", "1:x;0");
        EXPECT("\xff\xfe"
               "a\0\n\0",
               "-84");
}

TEST(list_drops_a_line_that_is_too_long)
{
        static char data[200000];
        memset(data, 'x', sizeof data);
        memcpy(data, "first\n", 6);
        memcpy(data + 150000, "\nlast\n", 6);
        expect(data, 150006, "1:first;2:too long;3:last;0");
        expect(data, 140000, "1:first;2:too long;0");
}

TEST(list_that_is_not_there)
{
        struct list *l = NULL;
        ASSERT_EQ(list_open("/nonexistent/list", &l), -ENOENT);
        ASSERT_EQ(list_open("/tmp", &l), -EISDIR);
        ASSERT_TRUE(l == NULL);
}

static int fds[2];

static int drip(void *arg)
{
        (void)arg;
        static const char text[] = "\xef\xbb\xbf"
                                   "ab\ncd\r\n";
        for (size_t i = 0; i < sizeof text - 1; i++) {
                ASSERT_EQ(write(fds[1], text + i, 1), 1);
                int rc = resha_sleep(RESHA_MS(1));
                if (rc < 0)
                        return rc;
        }
        close(fds[1]);
        return 0;
}

/* A list on stdin that comes byte by byte: each line is there as soon as it ends, and the loop goes on meanwhile. */
static int drip_and_read(void *arg)
{
        (void)arg;
        TEXT(t);
        ASSERT_OK(pipe(fds));
        int saved = dup(0);
        dup2(fds[0], 0);
        close(fds[0]);
        RESHA_GROUP(g);
        resha_group_begin(&g, NULL);
        resha_spawn(&g, drip, NULL);
        read_all(&t, "-");
        int rc = resha_group_end(&g, 0);
        dup2(saved, 0);
        close(saved);
        ASSERT_STR(text_string(&t), "1:ab;2:cd;0");
        return rc;
}

TEST(list_from_a_pipe_that_drips)
{
        if (test_is_sim())
                test_skip("needs a real pipe");
        RUN(drip_and_read, NULL);
}
