/* SPDX-License-Identifier: MIT */
#ifndef BENCH_FILES_COMMON_H
#define BENCH_FILES_COMMON_H

/* What the programs of `files` share. The files are FOLDER/000/00000 and so on, a thousand to a folder. */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum { FILES_PATH = 512, FILES_IN_FOLDER = 1000 };

static inline const char *files_path(char path[static FILES_PATH], const char *folder, unsigned i)
{
        snprintf(path, FILES_PATH, "%s/%03u/%05u", folder, i / FILES_IN_FOLDER, i);
        return path;
}

struct files_time {
        double wall, cpu;
};

static inline struct files_time files_start(void)
{
        struct timespec t;
        struct rusage r;

        clock_gettime(CLOCK_MONOTONIC, &t);
        getrusage(RUSAGE_SELF, &r);
        return (struct files_time){ (double)t.tv_sec + (double)t.tv_nsec / 1e9,
                                    (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
                                            (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6 };
}

/* A line of JSON; 0, or 1 if not all was read. */
static inline int files_end(const char *name, const struct files_time *start, unsigned files, uint64_t bytes)
{
        struct files_time now = files_start();

        if (files)
                printf("{\"bench\":\"%s\",\"files\":%u,\"bytes\":%" PRIu64 ",\"us\":%.3f,\"cpu_us\":%.3f}\n", name,
                       files, bytes, (now.wall - start->wall) * 1e6 / files, (now.cpu - start->cpu) * 1e6 / files);
        return files ? 0 : 1;
}

#endif
