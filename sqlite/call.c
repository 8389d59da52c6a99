/* SPDX-License-Identifier: MIT */
/* One call of a task: from the loop to the worker and back.
 *
 *     task: hop ──> db->calls ──> pool's queue ──> worker: conn->call, run ──> settle ──> task: out of db->calls
 *                      │                              ▲
 *                      └── stop (cancel or close) ────┘  a word in the call; what it is worth is for the worker to say
 *
 * The call lies on the stack of its task, which does not leave hop before the worker has let go. The pool takes a job
 * that has not started out of its queue when its task is cancelled. When the database is closed, jobs in the queue
 * stay there and fail on the worker in their turn: that needs no second way to take them out.
 *
 * After each call the connection has no open transaction: settle rolls back what is left, whoever left it.
 *
 * Invariants: db->calls holds exactly the calls whose tasks are inside hop; conn->call is set while, and only while,
 * a call runs. */

#include "internal.h"

#include <assert.h>

#include <resha/task.h>

int rs_sqlite_stopped(const struct rs_sqlite_conn *conn)
{
        struct rs_sqlite_call *call = conn->call;

        return call && !call->finish ? atomic_load_explicit(&call->stop, memory_order_relaxed) : 0;
}

static int settle(struct rs_sqlite_conn *conn, int rc)
{
        if (!conn->handle || !rs_sqlite_in_transaction(conn))
                return rc;
        rs_sqlite_rollback(conn);
        if (rc < 0)
                return rc;
        return rs_sqlite_refuse(
                conn->db, RESHA_SQLITE_ETRANSACTION, NULL,
                "the SQL left a transaction open, and it was rolled back: use resha_sqlite_transaction()");
}

/* Whether this thread is inside a call now, on whichever database: a transaction's function must not make another one,
 * which would wait for it. It is the worker's; in the simulated world, where calls run inline, the loop's. */
static _Thread_local bool inside;

/* The job, on the worker. */
static int run_call(void *arg)
{
        struct rs_sqlite_call *call = arg;
        struct rs_sqlite_conn *conn = call->conn;

        assert(!conn->call && !inside);
        inside = true;
        conn->call = call;
        atomic_fetch_add_explicit(&conn->db->hops, 1, memory_order_relaxed);
        int rc = rs_sqlite_stopped(conn);
        if (rc < 0)
                rc = rs_sqlite_refuse(conn->db, rc, NULL, "the database is being closed");
        else
                rc = settle(conn, call->run(conn, call));
        conn->call = NULL;
        inside = false;
        return rc;
}

/* On the loop's thread, while the job runs. The first reason stays. */
static void stop_call(void *arg)
{
        struct rs_sqlite_call *call = arg;
        int none = 0;

        atomic_compare_exchange_strong(&call->stop, &none, -ECANCELED);
}

static void add(resha_sqlite *db, struct rs_sqlite_call *call)
{
        call->previous = NULL;
        call->next = db->calls;
        if (db->calls)
                db->calls->previous = call;
        db->calls = call;
}

static void take_out(resha_sqlite *db, struct rs_sqlite_call *call)
{
        if (call->previous)
                call->previous->next = call->next;
        else
                db->calls = call->next;
        if (call->next)
                call->next->previous = call->previous;
        if (db->closing && !db->calls)
                resha_event_set(&db->left);
}

int rs_sqlite_hop(struct rs_sqlite_conn *conn, struct rs_sqlite_call *call)
{
        resha_sqlite *db = conn->db;

        if (inside)
                return rs_sqlite_refuse(db, -EPERM, NULL, "inside a transaction use resha_sqlite_tx_execute(), ...");
        if (!pthread_equal(db->owner, pthread_self()))
                return rs_sqlite_refuse(db, -EPERM, NULL, "the database belongs to another thread's loop");
        if (db->closing) {
                int rc = resha_checkpoint(); /* a cancel comes first, here as everywhere */
                return rc < 0 ? rc : rs_sqlite_refuse(db, RESHA_SQLITE_ECLOSED, NULL, "the database is closed");
        }
        RESHA_DOING(doing);
        char own[RS_SQLITE_SHOWN];
        struct rs_sqlite_text *text = call->sql ? rs_sqlite_text_take(db, call->sql, own) : NULL;
        resha_doing_begin(&doing, "sqlite", text ? text->text : call->sql ? own : NULL);
        call->conn = conn;
        add(db, call);
        int rc = resha_pool_run(db->pool, run_call, call, &(resha_job_opts){ .interrupt = stop_call });
        if (text)
                text->users--; /* nothing changes it before `doing` ends: that does not wait */
        take_out(db, call);
        return rc;
}
