/* SPDX-License-Identifier: MIT */
/* The peer of `files`: a bare pool of threads. files-pool FOLDER FILES THREADS: each thread takes the next number and
 * reads that file whole, into memory of its size that it frees. */

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "lib/bench.h"

enum { THREADS_MAX = 256 };

static struct {
        const char *folder;
        unsigned files;
        atomic_uint next;
        _Atomic uint64_t bytes;
        atomic_bool failed;
} work;

static int64_t load(const char *path)
{
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &st) < 0)
                return -1;
        size_t size = 0, room = (size_t)st.st_size + 1;
        char *data = malloc(room);
        ssize_t n = 1;
        while (data && n > 0 && size < (size_t)st.st_size) {
                n = read(fd, data + size, room - size);
                size += n > 0 ? (size_t)n : 0;
        }
        close(fd);
        free(data);
        return data && n >= 0 ? (int64_t)size : -1;
}

static void *worker(void *arg)
{
        char path[FILES_PATH];
        uint64_t bytes = 0;
        unsigned i;

        while ((i = atomic_fetch_add(&work.next, 1)) < work.files) {
                int64_t n = load(files_path(path, work.folder, i));
                if (n < 0)
                        atomic_store(&work.failed, true);
                else
                        bytes += (uint64_t)n;
        }
        atomic_fetch_add(&work.bytes, bytes);
        return arg;
}

int main(int argc, char **argv)
{
        if (argc < 2)
                return 2;
        work.folder = argv[1];
        work.files = (unsigned)bench_argument(argc, argv, 2, 10000);
        unsigned threads = (unsigned)bench_argument(argc, argv, 3, 2);
        pthread_t ids[THREADS_MAX];
        threads = threads < THREADS_MAX ? threads : THREADS_MAX;

        struct files_time start = files_start();
        for (unsigned i = 0; i < threads; i++)
                if (pthread_create(&ids[i], NULL, worker, NULL))
                        return 1;
        for (unsigned i = 0; i < threads; i++)
                pthread_join(ids[i], NULL);
        return files_end("files-pool", &start, work.failed ? 0 : work.files, work.bytes);
}
