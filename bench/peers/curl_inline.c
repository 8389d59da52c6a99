/* SPDX-License-Identifier: MIT */
/* curl_inline LIST DATABASE CONCURRENCY: the bare loop on libcurl, which writes each answer to SQLite as it comes, 500
 * to a transaction, on the one thread that there is. */

#include <stdlib.h>

#include "curl_loop.h"
#include "rows.h"

static size_t in_batch;

static void store(const struct answer *a)
{
        if (in_batch == 0)
                rows_begin();
        rows_add(a);
        if (++in_batch == ROWS_BATCH) {
                rows_commit();
                in_batch = 0;
        }
}

int main(int argc, char **argv)
{
        size_t n;

        if (argc != 4)
                return 2;
        char **urls = curl_loop_urls(argv[1], &n);
        rows_open(argv[2]);
        curl_loop_run(urls, n, (unsigned)strtoul(argv[3], NULL, 10), store);
        if (in_batch)
                rows_commit();
        rows_close();
        return 0;
}
