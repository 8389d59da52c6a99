/* SPDX-License-Identifier: MIT */
/* D3: downloads by a library that blocks, one second each. Three on the threads of the loop, then five on a pool of
 * their own: results are in the order of the items, whichever was first. */
#include <stdio.h>
#include <unistd.h>

#include <resha/resha.h>

struct page {
        const char *url;
        int id, size;
        resha_pool *pool;
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
        struct page *p = arg;

        return resha_pool_run(p->pool, download, p, NULL);
}

static int download_all(struct page *pages, size_t n)
{
        resha_instant start = resha_now();
        int rc = resha_gather(download_in_thread, pages, n, sizeof pages[0], NULL);

        if (rc < 0)
                return rc;
        printf("%zu pages after %.1f s:", n, (double)resha_between(start, resha_now()).ns / 1e9);
        for (size_t i = 0; i < n; i++)
                printf(" %s %d", pages[i].url, pages[i].size);
        puts("");
        return 0;
}

static int program(void *arg)
{
        resha_pool *pool RESHA_CLEANUP(resha_pool_freep) = NULL;
        struct page pages[] = { { "/a", 1, 0, NULL },
                                { "/b", 2, 0, NULL },
                                { "/c", 3, 0, NULL },
                                { "/d", 4, 0, NULL },
                                { "/e", 5, 0, NULL } };

        (void)arg;
        int rc = download_all(pages, 3); /* by the threads of the loop */
        if (rc == 0)
                rc = resha_pool_new(&(resha_pool_opts){ .threads = 5, .name = "download" }, &pool);
        if (rc < 0)
                return rc;
        for (int i = 0; i < 5; i++)
                pages[i].pool = pool;
        return download_all(pages, 5); /* by threads of their own */
}

int main(void)
{
        return resha_main(program, NULL);
}
