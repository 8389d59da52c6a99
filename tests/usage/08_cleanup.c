/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <string.h>
#include <resha/resha.h>

static int unlock(void *arg)
{
        char ok[8];
        int rc = resha_write_all(arg, "UNLOCK\n", 7, NULL);
        return rc < 0 ? rc : (int)resha_read(arg, ok, sizeof ok);
}

static int with_remote_lock(resha_stream *s)
{
        size_t sent = 0;
        int rc = resha_write_all(s, "LOCK\n", 5, &sent);
        if (rc == 0)
                rc = resha_sleep(RESHA_S(100));         /* the work */
        if (sent == 5) {
                int rc2 = resha_shielded(RESHA_S(2), unlock, s); /* own expiry: -ETIME, even while cancelled outside */
                if (rc == 0 && rc2 < 0)
                        rc = rc2;
        }
        return rc;                                      /* the record of rc survives the shield */
}

static int program(void *arg) { return with_remote_lock(arg); }
int main(void) { return resha_run(program, NULL, NULL) < 0; }
