/* SPDX-License-Identifier: MIT */
/* Calls about files and names, as the backends make them: by a crew of threads, or by the ring. */

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/disk.h"

static char folder[] = "/tmp/resha-disk-XXXXXX";

static const char *name(const char *last)
{
        static char path[4][256];
        static int next;

        next = (next + 1) % 4;
        snprintf(path[next], sizeof path[next], "%s/%s", folder, last);
        return path[next];
}

static __attribute__((noinline)) ssize_t call(struct rs_disk d)
{
        struct rs_loop *l;
        int rc = rs_enter(&l);

        return rc < 0 ? rc : rs_operation_disk(l, &d, "file");
}

TASK(disk_a_file_from_its_birth_to_its_end)
{
        char buf[16];
        struct statx st;

        ASSERT_TRUE(mkdtemp(folder) != NULL);
        int fd = (int)call(
                (struct rs_disk){ .call = RS_DISK_OPEN, .path = name("a"), .flags = O_CREAT | O_RDWR, .mode = 0600 });

        ASSERT_TRUE(fd > 2);
        ASSERT_EQ(call((struct rs_disk){ .call = RS_DISK_WRITE, .fd = fd, .buf = "hello", .size = 5, .offset = 2 }), 5);
        ASSERT_EQ(call((struct rs_disk){ .call = RS_DISK_READ, .fd = fd, .buf = buf, .size = 16, .offset = 2 }), 5);
        ASSERT_EQ(memcmp(buf, "hello", 5), 0);
        ASSERT_OK((int)call((struct rs_disk){ .call = RS_DISK_SYNC, .fd = fd }));
        ASSERT_OK((int)call((struct rs_disk){ .call = RS_DISK_STAT, .fd = fd, .mask = STATX_SIZE, .stat = &st }));
        ASSERT_EQ(st.stx_size, 7);
        ASSERT_OK((int)call((struct rs_disk){ .call = RS_DISK_CLOSE, .fd = fd }));
        ASSERT_OK((int)call((struct rs_disk){ .call = RS_DISK_RENAME, .path = name("a"), .path2 = name("b") }));
        ASSERT_EQ(call((struct rs_disk){ .call = RS_DISK_OPEN, .path = name("a"), .flags = O_RDONLY }), -ENOENT);
        ASSERT_OK((int)call((struct rs_disk){ .call = RS_DISK_UNLINK, .path = name("b") }));
        ASSERT_EQ(rmdir(folder), 0);
        return 0;
}
