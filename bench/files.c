/* SPDX-License-Identifier: MIT */
/* Whole files, some in flight: files FOLDER FILES IN_FLIGHT THREADS. Each of IN_FLIGHT tasks takes the next number and
 * loads that file. */

#include <resha/resha.h>

#include "lib/bench.h"
#include "peers/files/files.h"

static struct {
        const char *folder;
        unsigned files, next, in_flight;
        uint64_t bytes;
} work;

static int reader(void *arg)
{
        char path[FILES_PATH];
        (void)arg;

        while (work.next < work.files) {
                void *data;
                size_t size;
                int rc = resha_file_load(files_path(path, work.folder, work.next++), 0, &data, &size);
                if (rc < 0)
                        return rc;
                work.bytes += size;
                resha_free(data);
        }
        return 0;
}

static int readers(void *arg)
{
        RESHA_GROUP(g);
        (void)arg;

        resha_group_begin(&g, NULL);
        for (unsigned i = 0; i < work.in_flight; i++)
                resha_spawn(&g, reader, NULL);
        return resha_group_end(&g, 0);
}

int main(int argc, char **argv)
{
        if (argc < 2)
                return 2;
        work.folder = argv[1];
        work.files = (unsigned)bench_argument(argc, argv, 2, 10000);
        work.in_flight = (unsigned)bench_argument(argc, argv, 3, 64);
        resha_run_opts opts = { .threads = (unsigned)bench_argument(argc, argv, 4, 32) };

        struct files_time start = files_start();
        int rc = resha_run(readers, NULL, &opts);
        return files_end("files", &start, rc < 0 ? 0 : work.files, work.bytes);
}
