/* SPDX-License-Identifier: MIT */
#ifndef RESHA_FILE_H
#define RESHA_FILE_H

/* Files, the names of files, and folders. A call waits while the disk works, and the loop goes on: io_uring does it
 * where it can, else a thread; the results are the same. Which call when: docs/files.md.
 *
 * Cancelled, what has not begun never happens: -ECANCELED. What has begun is waited for, and its result is the result:
 * a file that was opened is there, and a name that was removed is gone. A large file is done in pieces
 * (RESHA_FILE_PIECE), between which a cancel is seen.
 *
 * A failure has a record with the name, what was tried, and what may help: resha_error_of(). Names are bytes without a
 * 0; in records those that cannot be printed are \xNN, and of a long one the end is shown. NULL for a name is -EINVAL,
 * an empty one -ENOENT. Names that do not begin with "/" begin in the working folder of the process. Nobody may change
 * a name or a buffer until the call has returned.
 *
 * Every name may meet -EACCES, -EPERM, -ENOENT, -ENOTDIR, -ELOOP, -ENAMETOOLONG, -EIO, -ENOMEM; what makes or changes
 * something -EROFS, -ENOSPC, -EDQUOT; what needs descriptors -EMFILE, -ENFILE; and where no thread can be started,
 * -EAGAIN. These are not repeated below. Closing needs none of it. */

#include <resha/base.h>

RESHA_BEGIN_DECLS

/* What one operation reads or writes at most, bytes: between two of these a call looks whether it is cancelled. */
#define RESHA_FILE_PIECE ((size_t)4 << 20)

enum resha_file_kind {
        RESHA_FILE_UNKNOWN, /* never told by the calls here */
        RESHA_FILE_REGULAR,
        RESHA_FILE_FOLDER,
        RESHA_FILE_SYMLINK,
        RESHA_FILE_FIFO,
        RESHA_FILE_SOCKET,
        RESHA_FILE_CHARACTER_DEVICE, /* /dev/null, terminals */
        RESHA_FILE_BLOCK_DEVICE,
};

/* Times are ns since 1970-01-01 in UTC, negative before; some 292 years from it they stay at the last one. */
typedef struct resha_stat {
        enum resha_file_kind kind;
        unsigned mode;     /* permissions: the lower 12 bits, 07777 */
        int64_t size;      /* bytes; 0 of most files in /proc */
        int64_t allocated; /* bytes on the disk */
        uint64_t device;   /* where it is; and what it is there: no two files that exist share both */
        uint64_t inode;
        uint64_t links;        /* names that it has */
        uint64_t represents;   /* of a device: which one, as dev_t */
        unsigned uid, gid;     /* owner, group */
        int64_t read_ns;       /* last read, as far as the file system keeps track */
        int64_t written_ns;    /* contents last changed */
        int64_t changed_ns;    /* contents, mode, owner or names last changed */
        int64_t made_ns;       /* INT64_MIN where the file system does not know */
        uint64_t _reserved[4]; /* 0 */
} resha_stat;

/* ---- open files ---- */

typedef struct resha_file resha_file;

/* Opens a file: a regular one, or a device. flags, of <fcntl.h>: O_RDONLY, O_WRONLY or O_RDWR, and any of O_CREAT,
 * O_EXCL, O_TRUNC, O_APPEND, O_SYNC, O_DSYNC, O_DIRECT, O_NOFOLLOW, O_NOATIME, and O_NOCTTY, O_NONBLOCK, O_CLOEXEC,
 * which change nothing: it opens so in any case; others are -EINVAL. mode: of a file that is made, less the umask, as
 * 0666. Never waits for another process: -EISDIR for a folder (resha_dir_open()), -EINVAL for a FIFO, a socket and a
 * terminal, with the stream's call in the record; but a process that waits for a reader or writer of that FIFO sees one
 * come and go.
 * 0; -EEXIST (O_EXCL), -ETXTBSY, -EOVERFLOW, -ENXIO, ... [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_open(const char *path, int flags, unsigned mode, resha_file **ret_file);

/* A new file for reading and writing that has no name, and is gone when it is closed, however the program ends. In
 * folder `dir` (NULL: $TMPDIR, else /tmp), mode 0600. [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_temp(const char *dir, resha_file **ret_file);

/* Any number of tasks may read and write one file at once; a file has no position here. */

/* Reads `size` bytes from `offset` on: fewer only where the file ends, as it is by then; 0 at its end. Negative:
 * failed. -EBADF if it was opened for writing only; -EINVAL for an offset that is negative, or a sum above INT64_MAX;
 * -ESPIPE: it has no offsets; -EAGAIN: a device that has nothing now (both: adopt it as a stream). [task] cancellation
 * point */
RESHA_API RESHA_MUST ssize_t resha_file_read(resha_file *f, void *buf, size_t size, int64_t offset);

/* Writes all at `offset`; what lies between the end and it reads as zeros. 0 or negative; *ret_written (may be NULL) is
 * how much was written, also on failure: -ENOSPC, -EDQUOT, -EFBIG (over the limit of the process, or of the file
 * system), -EIO; -EINVAL also for a file with O_APPEND; -EBADF if it was opened for reading only. [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_file_write(resha_file *f, const void *data, size_t size, int64_t offset,
                                          size_t *ret_written);

/* Writes all at the end of a file that was opened with O_APPEND, wherever that is by then: what one call writes, up to
 * 4 MiB, stays together, also where other processes append, unless the disk is full. -EINVAL without O_APPEND. As
 * resha_file_write(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_append(resha_file *f, const void *data, size_t size, size_t *ret_written);

/* Waits until all that was written is on the disk, and of datasync what is needed to read it. 0; -EIO, -ENOSPC,
 * -EDQUOT: something was lost, and every later sync of f says so, too; -EINVAL: not a thing that can be synced. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_file_sync(resha_file *f);
RESHA_API RESHA_MUST int resha_file_datasync(resha_file *f);

/* Makes it `size` bytes long, cut or with zeros behind. 0; -EINVAL, -EFBIG, -EBADF. [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_truncate(resha_file *f, int64_t size);

/* Keeps room on the disk for `size` bytes from `offset` on, so that writing there does not find it full; the file grows
 * to there. 0; -EOPNOTSUPP: this file system cannot. [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_allocate(resha_file *f, int64_t offset, int64_t size);

/* What it is. [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_stat(resha_file *f, resha_stat *ret_stat);

/* Its descriptor, for resha_send_file() and calls of your own; f still owns it, and an open f is as long as it is
 * valid. -EBADF once f is being closed. [loop] */
RESHA_API int resha_file_fd(const resha_file *f);

/* Refuses new calls, ends those that have not begun with -EBADF, waits for the others, closes. f is gone in any case.
 * What closing said: 0, or -EIO, -EDQUOT, -ENOSPC: something that was written is lost. NULL is 0. closep: a failure is
 * reported (RESHA_REPORT_LOST_ERROR), but of a file that was opened for reading. A file that is left open at the end of
 * the run is closed and reported (RESHA_REPORT_LEFT_OPEN). [task] not a cancellation point */
RESHA_API int resha_file_close(resha_file *f);
RESHA_API void resha_file_closep(resha_file **f);

/* ---- whole files ---- */

/* What resha_file_load() reads at most if it is not told. */
#define RESHA_LOAD_LIMIT ((size_t)256 << 20)

/* Reads a whole file that ends: a regular one, those of /proc and /sys, a device. *ret_data is all of it with one 0
 * byte behind, released by resha_free(); *ret_size (may be NULL) its bytes without that one. At most `limit` bytes [0:
 * RESHA_LOAD_LIMIT; SIZE_MAX: no limit], else -EMSGSIZE; one that grows meanwhile is read to its end by then. -EISDIR,
 * -EINVAL as resha_file_open(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_load(const char *path, size_t limit, void **ret_data, size_t *ret_size);

typedef struct resha_save_opts {
        unsigned mode;  /* permissions [0: those of the file that it replaces, else 0666 less the umask] */
        bool no_sync;   /* the file may be empty or the old one after a power failure [false: it is on the disk] */
        bool exclusive; /* -EEXIST if there is something of that name [false: it is replaced] */
        uint64_t _reserved[4];
} resha_save_opts;

/* Makes a file of these bytes, in one step: who opens it meanwhile gets all of the old or all of the new, also after a
 * crash. They are written to a file beside it, .resha-N.tmp, which is then renamed; it is removed if that fails, and
 * the old file stays as it was. Owner and group of the old one are kept where they may be; where the group may not, the
 * new one's has only the rights that everybody has. Its other names (hard links) keep the old contents. A symbolic link
 * is followed, and what it leads to is replaced; but in a folder where everybody may make names (as /tmp) neither links
 * nor files are trusted that belong to another user than this one or the folder's: -EACCES. -EISDIR; -EINVAL: what is
 * there is no regular file (open it and write). Should only the last step fail, the sync of the folder, the record says
 * that the file is the new one. opts may be NULL. [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_save(const char *path, const void *data, size_t size, const resha_save_opts *opts);

/* Copies a regular file, as resha_file_save() would make it: in one step, and nothing stays of one that failed. The
 * kernel copies, or makes them share what they have in common (reflink), where it can; else the holes of a file become
 * zeros that take room on the disk. Permissions are those of the file that it replaces, else of `from`. *ret_bytes (may
 * be NULL) is its size, on success. -EINVAL: they are the same file, or `from` is no regular file; as
 * resha_file_save(). [task] cancellation point */
RESHA_API RESHA_MUST int resha_file_copy(const char *from, const char *to, const resha_save_opts *opts,
                                         uint64_t *ret_bytes);

/* ---- names ---- */

/* What a name leads to; follow: what a symbolic link leads to, else the link itself. [task] cancellation point */
RESHA_API RESHA_MUST int resha_path_stat(const char *path, bool follow, resha_stat *ret_stat);

/* Gives a file or folder another name, in one step, replacing what has it: a file by a file, an empty folder by a
 * folder. exclusive: -EEXIST if something has it. 0; -ENOTEMPTY, -EISDIR, -ENOTDIR, -EXDEV (on another file system:
 * resha_file_copy()), -EINVAL (into itself), -EBUSY. [task] cancellation point */
RESHA_API RESHA_MUST int resha_path_rename(const char *from, const char *to, bool exclusive);

/* Removes a name; the file goes with its last name and the last that has it open. -EISDIR for a folder. [task]
 * cancellation point */
RESHA_API RESHA_MUST int resha_path_unlink(const char *path);

/* Makes a folder, of mode (as 0777) less the umask. -EEXIST. parents: those above it, too, as far as they are missing,
 * with 0777 less the umask; and 0 if it is there already. What was made stays if a later one fails. [task] cancellation
 * point */
RESHA_API RESHA_MUST int resha_path_mkdir(const char *path, unsigned mode, bool parents);

/* Removes an empty folder. -ENOTEMPTY, -ENOTDIR, -EBUSY. [task] cancellation point */
RESHA_API RESHA_MUST int resha_path_rmdir(const char *path);

/* `path` becomes a further name of the file `target` (a hard link); of a symbolic link itself, where it is one.
 * -EEXIST, -EXDEV, -EMLINK, -EPERM (folders have none). [task] cancellation point */
RESHA_API RESHA_MUST int resha_path_link(const char *target, const char *path);

/* Makes `path` a symbolic link that says `target`, whatever that is. -EEXIST. [task] cancellation point */
RESHA_API RESHA_MUST int resha_path_symlink(const char *target, const char *path);

/* What a symbolic link says, with a 0 behind: bytes without the 0. -EMSGSIZE if it does not fit into size - 1 bytes;
 * -EINVAL: no symbolic link. [task] cancellation point */
RESHA_API RESHA_MUST ssize_t resha_path_readlink(const char *path, char *buf, size_t size);

/* ---- folders ---- */

typedef struct resha_dir resha_dir;

typedef struct resha_dir_entry {
        const char *name; /* without the folder; valid until the next call on the folder */
        enum resha_file_kind kind;
        uint64_t inode;
        uint64_t _reserved[2];
} resha_dir_entry;

/* Opens a folder to list it. -ENOTDIR. [task] cancellation point */
RESHA_API RESHA_MUST int resha_dir_open(const char *path, resha_dir **ret_dir);

/* The next entry, without "." and "..", in no order: 1; 0: there are no more; negative: failed. What is made or removed
 * meanwhile may be among them or not. -EBUSY while another task is inside; -EBADF. [task] cancellation point */
RESHA_API RESHA_MUST int resha_dir_next(resha_dir *d, resha_dir_entry *ret_entry);

/* Ends a call inside with -EBADF if it has not begun, else waits for it; closes. NULL is fine.
 * [task] not a cancellation point */
RESHA_API void resha_dir_close(resha_dir *d);
RESHA_API void resha_dir_closep(resha_dir **d);

RESHA_END_DECLS
#endif
