/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <stdio.h>
#include <resha/http.h>
#include <resha/resha.h>

struct item { resha_http *session; char url[64]; int status; size_t size; };

static int get(void *arg)
{
        struct item *it = arg;
        resha_response *r RESHA_CLEANUP(resha_response_freep) = NULL;
        int rc = resha_http_get(it->session, it->url, &r);
        if (rc < 0)
                return rc;
        it->status = resha_response_status(r);
        resha_response_body(r, &it->size);
        return 0;
}
static int get_in_5s(void *arg) { return resha_timeout(RESHA_S(5), get, arg); }

static int program(void *arg)
{
        resha_http *session RESHA_CLEANUP(resha_http_freep) = NULL;
        int rc = resha_http_new(NULL, &session);
        if (rc < 0)
                return rc;
        struct item items[50];
        resha_error errors[50];                 /* 12 KiB; a real program has it on the heap */
        size_t failed;
        for (int i = 0; i < 50; i++) {
                items[i] = (struct item){ .session = session };
                snprintf(items[i].url, sizeof items[i].url, "%s/%s/%d", (char *)arg, i % 10 == 9 ? "close" : "page", i);
        }
        rc = resha_gather(get_in_5s, items, 50, sizeof items[0],
                          &(resha_gather_opts){
                                  .limit = 10, .keep_going = true, .ret_errors = errors, .ret_failed = &failed });
        for (int i = 0; i < 50; i++)            /* valid also when rc is -ECANCELED: items never started say so */
                if (errors[i].code < 0)
                        printf("%s: %s\n", items[i].url, errors[i].text);
                else
                        printf("%s: %d, %zu bytes\n", items[i].url, items[i].status, items[i].size);
        return rc;
}

int main(int argc, char **argv) { return argc != 2 || resha_run(program, argv[1], NULL) < 0; }
