/* SPDX-License-Identifier: MIT */
#ifndef FOLDER_H
#define FOLDER_H

/* A folder of a test's own, removed with all that is in it; and names in it. Made and looked at by plain calls, which a
 * cancel does not touch. */

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
        char path[64];
        char name[8][128]; /* of in(), in turns */
        unsigned turn;
};

static inline void folder_make(struct folder *f)
{
        *f = (struct folder){ .path = "/tmp/resha-files-XXXXXX" };
        if (!mkdtemp(f->path))
                FAIL("mkdtemp: %m");
}

static int folder_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
        (void)st, (void)kind, (void)ftw;
        return remove(path);
}

static inline void folder_remove(struct folder *f)
{
        nftw(f->path, folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define FOLDER(f) \
        struct folder f RESHA_CLEANUP(folder_remove); \
        folder_make(&f)

static inline __attribute__((unused)) const char *in(struct folder *f, const char *name)
{
        char *to = f->name[f->turn++ % 8];

        size_t folder = strlen(f->path), size = strlen(name) + 1;

        if (folder + 1 + size > sizeof f->name[0])
                FAIL("%s is too long", name);
        memcpy(to, f->path, folder);
        to[folder] = '/';
        memcpy(to + folder + 1, name, size);
        return to;
}

static inline __attribute__((unused)) void put(const char *path, const char *text)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

        if (fd >= 0)
                close(fd);
        if (!good)
                FAIL("cannot write %s", path);
}

/* What is in a file; "(none)" if there is none. */
static inline __attribute__((unused)) const char *text_of(const char *path)
{
        static char text[256];
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

        if (fd >= 0)
                close(fd);
        if (n < 0)
                return "(none)";
        text[n] = '\0';
        return text;
}

/* How many entries there are: nothing but what is meant to be there may be left beside it. */
static inline __attribute__((unused)) unsigned entries(const char *path)
{
        DIR *dir = opendir(path);
        unsigned n = 0;

        if (!dir)
                return 0;
        while (readdir(dir))
                n++;
        closedir(dir);
        return n - 2;
}

static inline void close_file(resha_file **f)
{
        (void)resha_file_close(*f); /* also where it has failed before: that is looked at there */
        *f = NULL;
}

#define OPEN_FILE(f) resha_file *f RESHA_CLEANUP(close_file) = NULL

static inline __attribute__((unused)) const char *said(ssize_t rc)
{
        return resha_error_of((int)rc)->text;
}

#endif
