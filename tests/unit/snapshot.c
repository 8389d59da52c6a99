/* SPDX-License-Identifier: MIT */
/* What is seen of tasks from outside: the lines of snapshots of small programs, in the simulated world, where times are
 * exact. What differs from run to run is left out, addresses are numbered. */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/snapshot.h"
#include "job.h"
#include "sys/observe.h"

enum { ROOM = 256 * 1024 };

/* ---- lines for people ---- */

static struct {
        char text[64 * 1024];
        size_t n;
        char address[64][24]; /* @1, @2, ... */
        size_t addresses;
} seen;

static void add(const char *format, ...) RESHA_PRINTF(1, 2);
static void add(const char *format, ...)
{
        va_list args;

        va_start(args, format);
        int n = vsnprintf(seen.text + seen.n, sizeof seen.text - seen.n, format, args);
        va_end(args);
        ASSERT_TRUE(n >= 0 && (size_t)n < sizeof seen.text - seen.n);
        seen.n += (size_t)n;
}

static size_t number_of(const char *address)
{
        for (size_t i = 0; i < seen.addresses; i++)
                if (strcmp(seen.address[i], address) == 0)
                        return i + 1;
        ASSERT_TRUE(seen.addresses < 64);
        snprintf(seen.address[seen.addresses], sizeof seen.address[0], "%s", address);
        return ++seen.addresses;
}

/* One key and its value, from `"` on; returns what is behind. Strings here have no escapes. */
static const char *take(const char *at, char *key, char *value, size_t size)
{
        const char *end = strchr(at + 1, '"');

        snprintf(key, size, "%.*s", (int)(end - at - 1), at + 1);
        at = end + 2;
        end = *at == '"' ? strchr(at + 1, '"') + 1 : *at == '[' ? strchr(at, ']') + 1 : at + strcspn(at, ",}");
        snprintf(value, size, "%.*s", (int)(end - at), at);
        return end;
}

static bool left_out(const char *key)
{
        static const char *const out[] = { "loop", "site", "age", "stack_used", "stack_high", "stack_size" };

        for (size_t i = 0; i < sizeof out / sizeof *out; i++)
                if (strcmp(key, out[i]) == 0)
                        return true;
        return false;
}

static void add_line(const char *line)
{
        char key[256], value[256];

        for (const char *at = line + 1; *at && *at != '}'; at += *at == ',') {
                at = take(at, key, value, sizeof value);
                if (left_out(key))
                        continue;
                value[strcspn(value, "\n")] = '\0';
                if (strncmp(value, "\"0x", 3) == 0)
                        add(" %s=@%zu", key, number_of(value));
                else if (strcmp(key, "type") == 0)
                        add("%.*s", (int)strlen(value) - 2, value + 1);
                else
                        add(" %s=%s", key, value);
        }
        add("\n");
}

static void snapshot_freep(struct rs_snapshot **s)
{
        resha_free(*s);
}

/* The bytes of an address in a mark may be anything, an end of a line or of all, too. */
static void hide_marks(char *from, const char *end)
{
        enum { SIZE = 2 + sizeof(void *) };

        for (char *mark; (mark = memchr(from, RS_MARK, (size_t)(end - from))); from = mark + SIZE) {
                ASSERT_EQ(mark[1], 'a'); /* no stacks were asked for */
                memset(mark, '.', SIZE);
        }
}

static void read_by(const struct rs_reader *reader, const char *types)
{
        static char room[ROOM];
        const struct rs_request request = { .kind = RS_REQUEST_SNAPSHOT };
        struct rs_snapshot *s RESHA_CLEANUP(snapshot_freep) = resha_malloc(sizeof *s);
        struct rs_loop *l = rs_loop_current;
        struct rs_snapshot_from from = { .current = l->current, .since = INT64_MIN };
        struct rs_json j;

        ASSERT_TRUE(s);
        rs_json_init(&j, room, sizeof room - 1);
        ASSERT_TRUE(rs_snapshot_begin(s, reader, l, &request, &from));
        ASSERT_TRUE(rs_snapshot_slice(s, &j, rs_now(l), INT64_MAX));
        *j.at = '\0';
        hide_marks(room, j.at);
        seen.n = seen.addresses = 0;
        seen.text[0] = '\0';
        for (char *save, *line = strtok_r(room, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                char type[32];
                ASSERT_EQ(sscanf(line, "{\"type\":\"%31[a-z]", type), 1);
                if (strstr(types, type) && !strstr(line, "\"name\":\"main\"") && !strstr(line, "\"task\":1,"))
                        add_line(line);
        }
}

/* The lines of the running loop whose type is among `types`, without those of the main task: the same by copies, kept
 * ones too, as by what is there. */
static const char *look(const char *types)
{
        static char there[sizeof seen.text];
        static struct rs_copies copies;

        read_by(&rs_reader_here, types);
        memcpy(there, seen.text, sizeof there);
        if (!rs_observe_read(&(char){ 0 }, "x", 1)) /* an emulator has no such call */
                return there;
        read_by(&rs_reader_copies, types);
        ASSERT_STR(seen.text, there);
        rs_copies_use(&copies);
        read_by(&rs_reader_copies, types);
        rs_copies_use(NULL);
        ASSERT_STR(seen.text, there);
        return there;
}

/* ---- tasks ---- */

static int sleeps(void *arg)
{
        return resha_sleep(MS(*(int64_t *)arg));
}

static int locks(void *arg)
{
        int rc = resha_mutex_lock(arg);

        if (rc == 0) {
                rc = resha_sleep(MS(50));
                ASSERT_OK(resha_mutex_unlock(arg));
        }
        return rc;
}

/* Everything that a test has started is cancelled at its end. */
#define CHILDREN(g) \
        RESHA_GROUP(g); \
        resha_group_begin(&(g), &(resha_group_opts){ .background = true })

TASK(a_sleep_and_its_end)
{
        static int64_t ms = 100;
        CHILDREN(g);

        SIM_ONLY();
        resha_spawn(&g, sleeps, &ms);
        ASSERT_OK(resha_sleep(MS(30)));
        ASSERT_STR(look("task"),
                   "task id=2 name=\"sleeps\" state=\"waits\" since=30000000 what=\"sleep\" due=70000000 group=@1\n");
        return resha_group_end(&g, 0);
}

TASK(a_mutex_its_owner_and_who_waits)
{
        static resha_mutex m;
        CHILDREN(g);

        SIM_ONLY();
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, locks, &m);
        ASSERT_OK(resha_sleep(MS(10)));
        ASSERT_STR(look("task object"),
                   "task id=2 name=\"locks\" state=\"waits\" since=10000000 what=\"sleep\" due=40000000 group=@1\n"
                   "task id=3 name=\"locks\" state=\"waits\" since=10000000 what=\"mutex\" object=@2 holders=[2] "
                   "group=@1\n"
                   "object at=@2 kind=\"mutex\" owner=2 waiting=2\n"
                   "task id=4 name=\"locks\" state=\"waits\" since=10000000 what=\"mutex\" object=@2 holders=[2] "
                   "group=@1\n");
        return resha_group_end(&g, 0);
}

static int puts_many(void *arg)
{
        int item = 7, rc;

        do
                rc = resha_queue_put(arg, &item);
        while (rc > 0);
        return rc;
}

TASK(a_queue_that_nobody_reads)
{
        resha_queue *q;
        CHILDREN(g);

        SIM_ONLY();
        ASSERT_OK(resha_queue_new(sizeof(int), 10, NULL, &q));
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, puts_many, q);
        ASSERT_OK(resha_sleep(MS(10)));
        ASSERT_HAS(look("object"),
                   "object at=@1 kind=\"queue\" detail=\"10 of 10 items, 3 wait to put, 0 to get\" held=10 limit=10 "
                   "waiting=3\n");
        ASSERT_HAS(look("task"), "task id=4 name=\"puts_many\" state=\"waits\" since=10000000 what=\"place in queue\"");
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        resha_queue_free(q);
        return 0;
}

static int acquires(void *arg)
{
        return resha_semaphore_acquire(arg);
}

static int awaits_event(void *arg)
{
        return resha_event_wait(arg);
}

static int awaits_barrier(void *arg)
{
        return resha_barrier_wait(arg);
}

TASK(a_semaphore_an_event_and_a_barrier)
{
        static resha_semaphore s;
        static resha_event e;
        static resha_barrier b;
        CHILDREN(g);

        SIM_ONLY();
        resha_semaphore_init(&s, 2);
        ASSERT_OK(resha_barrier_init(&b, 3));
        for (int i = 0; i < 4; i++)
                resha_spawn(&g, acquires, &s);
        resha_spawn(&g, awaits_event, &e);
        resha_spawn(&g, awaits_barrier, &b);
        ASSERT_OK(resha_sleep(MS(1)));
        ASSERT_STR(look("object"),
                   "object at=@1 kind=\"semaphore\" detail=\"2 of 2 permits are held\" held=2 limit=2 waiting=2\n"
                   "object at=@2 kind=\"event\" waiting=1\n"
                   "object at=@3 kind=\"barrier\" detail=\"1 of 3 have come\" held=1 limit=3 waiting=1\n");
        return resha_group_end(&g, 0);
}

static int limited(void *arg)
{
        RESHA_GROUP(g);

        resha_group_begin(&g, &(resha_group_opts){ .limit = 2 });
        for (int i = 0; i < 3; i++)
                resha_spawn(&g, sleeps, arg);
        return resha_group_end(&g, 0);
}

static int under_a_deadline(void *arg)
{
        RESHA_SCOPE(s);

        resha_timeout_begin(&s, MS(200));
        return resha_scope_end(&s, limited(arg));
}

TASK(scopes_groups_limits_and_deadlines)
{
        static int64_t ms = 100;
        CHILDREN(g);

        SIM_ONLY();
        resha_spawn(&g, under_a_deadline, &ms);
        ASSERT_OK(resha_sleep(MS(50)));
        ASSERT_STR(
                look("task scope"),
                "task id=2 name=\"under_a_deadline\" state=\"waits\" since=50000000 what=\"place in group\" object=@1 "
                "detail=\"2 of 2 run\" deadline=150000000 group=@2 scope=@1\n"
                "scope at=@3 task=2 kind=\"scope\" parent=@2 left=150000000\n"
                "scope at=@1 task=2 kind=\"group\" parent=@3 running=2 limit=2 waiting=1\n"
                "task id=3 name=\"sleeps\" state=\"waits\" since=50000000 what=\"sleep\" due=50000000 "
                "deadline=150000000 group=@1\n"
                "task id=4 name=\"sleeps\" state=\"waits\" since=50000000 what=\"sleep\" due=50000000 "
                "deadline=150000000 group=@1\n");
        return resha_group_end(&g, 0);
}

static int waits_for_two(void *arg)
{
        return resha_task_wait_all(arg, 2, RESHA_S(1), NULL);
}

TASK(handles_of_tasks)
{
        static int64_t ms = 100;
        resha_task h[2] = { 0 };
        CHILDREN(g);

        SIM_ONLY();
        for (int i = 0; i < 2; i++)
                resha_spawn_task(&g, sleeps, &ms, &h[i]);
        resha_spawn(&g, waits_for_two, h);
        ASSERT_OK(resha_sleep(MS(10)));
        ASSERT_HAS(look("task"),
                   "task id=4 name=\"waits_for_two\" state=\"waits\" since=10000000 what=\"tasks\" object=@2 "
                   "holders=[2,3] detail=\"all of 2, 2 run\" due=990000000 group=@1\n");
        return resha_group_end(&g, 0);
}

static int selects(void *arg)
{
        static resha_event e;
        int item;
        resha_case cases[] = { RESHA_ON_GET(arg, &item), RESHA_ON_EVENT(&e), RESHA_ON_TIME(resha_after(MS(40))) };

        return resha_select(cases, 3);
}

TASK(a_select)
{
        resha_queue *q;
        CHILDREN(g);

        SIM_ONLY();
        ASSERT_OK(resha_queue_new(sizeof(int), 1, NULL, &q));
        resha_spawn(&g, selects, q);
        ASSERT_OK(resha_sleep(MS(10)));
        ASSERT_STR(look("task"), "task id=2 name=\"selects\" state=\"waits\" since=10000000 what=\"select\" "
                                 "detail=\"queue to get, event, time\" due=30000000 group=@1\n");
        ASSERT_EQ(resha_group_end(&g, 0), 0);
        resha_queue_free(q);
        return 0;
}

static int stubborn(void *arg)
{
        (void)arg;
        for (int i = 0; i < 5; i++)
                if (resha_sleep(MS(1)) == 0)
                        return 0;
        return resha_shielded(RESHA_FOREVER, sleeps, &(int64_t){ 10 });
}

TASK(a_cancel_and_a_shield)
{
        resha_task h = { 0 };
        CHILDREN(g);

        SIM_ONLY();
        resha_spawn_task(&g, stubborn, NULL, &h);
        ASSERT_OK(resha_yield());
        resha_task_cancel(&h);
        ASSERT_OK(resha_sleep(MS(5)));
        ASSERT_STR(look("task scope"),
                   "task id=2 name=\"stubborn\" state=\"waits\" since=5000000 what=\"sleep\" due=5000000 group=@1 "
                   "scope=@2 cancelled=\"call\"\n"
                   "scope at=@2 task=2 kind=\"shield\" parent=@1\n");
        return resha_group_end(&g, 0);
}

static int does(void *arg)
{
        RESHA_DOING(d);

        resha_doing_begin(&d, "mirror", arg);
        d.phase = "connects";
        d.attempt = 2;
        return resha_sleep(MS(10));
}

TASK(what_a_task_says_that_it_does)
{
        static char host[] = "example.org";
        CHILDREN(g);

        SIM_ONLY();
        resha_spawn(&g, does, host);
        ASSERT_OK(resha_sleep(MS(4)));
        ASSERT_STR(look("task"), "task id=2 name=\"does\" state=\"waits\" since=4000000 what=\"sleep\" due=6000000 "
                                 "doing=\"mirror example.org: connects (attempt 2)\" group=@1\n");
        return resha_group_end(&g, 0);
}

TASK(tasks_that_are_new_or_wait_for_their_turn)
{
        static int64_t ms = 1;
        CHILDREN(g);

        SIM_ONLY();
        resha_spawn(&g, sleeps, &ms);
        ASSERT_STR(look("task"), "task id=2 name=\"sleeps\" state=\"new\" since=0 group=@1\n");
        return resha_group_end(&g, 0);
}

/* ---- slices ---- */

/* In slices that have room for a few tasks each: all are seen, once, though the tasks go on between. */
TASK(slices_between_which_tasks_go_on)
{
        static int64_t ms = 100;
        const struct rs_request request = { .kind = RS_REQUEST_SNAPSHOT };
        struct rs_snapshot *s RESHA_CLEANUP(snapshot_freep) = resha_malloc(sizeof *s);
        struct rs_loop *l = rs_loop_current;
        struct rs_snapshot_from from = { .since = INT64_MIN };
        char room[1000];
        unsigned slices = 0, tasks = 0;
        bool over;
        CHILDREN(g);

        SIM_ONLY();
        for (int i = 0; i < 200; i++)
                resha_spawn(&g, sleeps, &ms);
        ASSERT_TRUE(s);
        ASSERT_TRUE(rs_snapshot_begin(s, &rs_reader_here, l, &request, &from));
        do {
                struct rs_json j;
                rs_json_init(&j, room, sizeof room - 1);
                over = rs_snapshot_slice(s, &j, rs_now(l), 0);
                *j.at = '\0';
                for (const char *at = room; (at = strstr(at, "\"type\":\"task\"")); at++)
                        tasks++;
                slices++;
                ASSERT_OK(resha_yield());
        } while (!over);
        ASSERT_EQ(tasks, 201);
        ASSERT_TRUE(slices >= 40);
        return resha_group_end(&g, 0);
}
