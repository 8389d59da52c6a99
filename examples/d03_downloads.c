/* SPDX-License-Identifier: MIT */
/* D3: downloads by a library that blocks, one second each. Three from tasks of their own, then a map of five over
 * a pool: results are in the order of the items, whichever was first. */
#include <stdio.h>
#include <unistd.h>

#include <resha/resha.h>

struct page {
        const char *url;
        int id, size;
};

static int download(void *arg) /* on a thread */
{
        struct page *p = arg;

        sleep(1);
        p->size = 1000 * p->id;
        return 0;
}

static int download_in_thread(void *arg)
{
        return resha_pool_run(NULL, download, arg, NULL);
}

static void show(const struct page *pages, int n, resha_instant start)
{
        printf("%d pages after %.1f s:", n, (double)resha_between(start, resha_now()).ns / 1e9);
        for (int i = 0; i < n; i++)
                printf(" %s %d", pages[i].url, pages[i].size);
        puts("");
}

static int program(void *arg)
{
        struct page pages[] = { { "/a", 1, 0 }, { "/b", 2, 0 }, { "/c", 3, 0 }, { "/d", 4, 0 }, { "/e", 5, 0 } };
        resha_pool *pool RESHA_CLEANUP(resha_pool_freep) = NULL;

        (void)arg;
        resha_instant start = resha_now();
        int rc = resha_gather(download_in_thread, pages, 3, sizeof pages[0], NULL);
        if (rc < 0)
                return rc;
        show(pages, 3, start);
        start = resha_now();
        rc = resha_pool_new(&(resha_pool_opts){ .threads = 5, .name = "download" }, &pool);
        if (rc == 0)
                rc = resha_pool_map(pool, download, pages, 5, sizeof pages[0], NULL);
        if (rc == 0)
                show(pages, 5, start);
        return rc;
}

int main(void)
{
        return resha_main(program, NULL);
}
