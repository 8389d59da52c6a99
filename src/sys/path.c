/* SPDX-License-Identifier: MIT */
/* System calls on names in the file system; see sys.c for what holds for all. A name may mean another file a moment
 * later: so what is looked at is first pinned, that is opened without the right to do anything with it, and compared by
 * device and inode. */

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "sys/call.h"

static void tell(const struct stat *st, struct rs_sys_file *ret_file)
{
        *ret_file = (struct rs_sys_file){ st->st_dev, st->st_ino, st->st_mode, st->st_uid, st->st_gid };
}

int rs_sys_pin(const char *path, struct rs_sys_file *ret_file)
{
        struct stat st;
        int fd = rs_sys_open(path, O_PATH | O_NOFOLLOW);

        if (fd < 0)
                return fd;
        int rc = (int)CALL(RS_SYS_FSTAT, fstat(fd, &st));
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        tell(&st, ret_file);
        return fd;
}

int rs_sys_look(const char *path, struct rs_sys_file *ret_file)
{
        struct stat st;
        int rc = (int)CALL(RS_SYS_LSTAT, lstat(path, &st));

        if (rc == 0)
                tell(&st, ret_file);
        return rc;
}

int rs_sys_file_look(int fd, struct rs_sys_file *ret_file, int64_t *ret_size)
{
        struct stat st;
        int rc = (int)CALL(RS_SYS_FSTAT, fstat(fd, &st));

        if (rc == 0) {
                tell(&st, ret_file);
                *ret_size = st.st_size;
        }
        return rc;
}

int rs_sys_file_chmod(int fd, mode_t mode)
{
        return (int)CALL(RS_SYS_CHMOD, fchmod(fd, mode));
}

int rs_sys_file_chown(int fd, unsigned uid, unsigned gid)
{
        return (int)CALL(RS_SYS_CHMOD, fchown(fd, uid, gid));
}

int rs_sys_socket_mode(int fd, unsigned mode)
{
        return (int)CALL(RS_SYS_CHMOD, fchmod(fd, mode));
}

/* By the way of /proc: before Linux 6.6 there is no other. */
int rs_sys_pinned_mode(int fd, unsigned mode)
{
        char name[32];

        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        return (int)CALL(RS_SYS_CHMOD, chmod(name, mode));
}

int rs_sys_unlink(const char *path)
{
        return (int)CALL(RS_SYS_UNLINK, unlink(path));
}

int rs_sys_rename_new(const char *from, const char *to)
{
        return (int)CALL(RS_SYS_RENAME, renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE));
}

int rs_sys_lock_folder(const char *path)
{
        int fd = rs_sys_open(path, O_RDONLY | O_DIRECTORY);

        if (fd < 0)
                return fd;
        int rc = (int)CALL(RS_SYS_FLOCK, flock(fd, LOCK_EX | LOCK_NB));
        if (rc < 0) {
                rs_sys_close(fd);
                return rc;
        }
        return fd;
}

int rs_sys_working_folder(char *buf, size_t size)
{
        return (int)CALL(RS_SYS_GETCWD, getcwd(buf, size) ? 0 : -1);
}
