/* SPDX-License-Identifier: MIT */
#ifndef AUDIT_H
#define AUDIT_H

/* The unit tests once more, in the simulated worlds of many seeds, with cancels and failing allocations injected, and
 * with books kept of what they do. Included before everything else where a test is compiled for that: each public call
 * named here goes through one of the audit, which makes it, books it, and looks whether the books agree with the
 * object.
 *
 * What the books say (ledger.c, errors.c)
 *     semaphore   permits free + taken + on their way to a waiter = all
 *     mutex       held by exactly the task that took it last and has not given it back
 *     condition   notifications given = waits that returned 0
 *     queue       items put = items taken + dropped + inside + on their way, and they are the same items
 *     channel     the same
 *     event       who waited when it was set goes on; nobody else does
 *     barrier     each round lets all parties through, with the places 0 .. n-1, or none
 *     limiter     no more starts in a window than its rates allow
 *     group       each failure of a child counted once; the first comes out of one boundary, or is reported as lost
 *     waiters     when nobody can go on, nobody waits for what is there */

#include <resha/resha.h>

int audit_run(resha_fn *fn, void *arg, const resha_run_opts *opts);

void audit_semaphore_init(resha_semaphore *s, size_t permits);
int audit_semaphore_acquire(resha_semaphore *s);
int audit_semaphore_try_acquire(resha_semaphore *s);
int audit_semaphore_release(resha_semaphore *s);

int audit_mutex_lock(resha_mutex *m);
int audit_mutex_try_lock(resha_mutex *m);
int audit_mutex_unlock(resha_mutex *m);

void audit_condition_init(resha_condition *c, resha_mutex *m);
int audit_condition_wait(resha_condition *c);
int audit_condition_wait_for(resha_condition *c, bool (*pred)(void *arg), void *arg);
int audit_condition_notify(resha_condition *c, size_t n);
int audit_condition_notify_all(resha_condition *c);

int audit_queue_new(size_t item_size, size_t capacity, resha_drop_fn *drop, resha_queue **ret_queue);
int audit_queue_new_opt(size_t item_size, size_t capacity, const resha_queue_opts *opts, resha_queue **ret_queue);
void audit_queue_free(resha_queue *q);
void audit_queue_freep(resha_queue **q);
int audit_queue_put(resha_queue *q, const void *item);
int audit_queue_get(resha_queue *q, void *ret_item);
int audit_queue_try_put(resha_queue *q, const void *item);
int audit_queue_try_get(resha_queue *q, void *ret_item);
void audit_queue_shutdown_now(resha_queue *q);

int audit_channel_new(size_t item_size, size_t capacity, resha_sender **ret_sender, resha_receiver **ret_receiver);
int audit_channel_new_opt(size_t item_size, size_t capacity, const resha_channel_opts *opts, resha_sender **ret_sender,
                          resha_receiver **ret_receiver);
resha_sender *audit_sender_ref(resha_sender *s);
resha_receiver *audit_receiver_ref(resha_receiver *r);
void audit_sender_close(resha_sender *s);
void audit_receiver_close(resha_receiver *r);
void audit_sender_closep(resha_sender **s);
void audit_receiver_closep(resha_receiver **r);
int audit_send(resha_sender *s, const void *item);
int audit_recv(resha_receiver *r, void *ret_item);
int audit_try_send(resha_sender *s, const void *item);
int audit_try_recv(resha_receiver *r, void *ret_item);

void audit_event_set(resha_event *e);
int audit_event_wait(resha_event *e);

int audit_select(resha_case *cases, size_t n);
int audit_try_select(resha_case *cases, size_t n);

int audit_barrier_init(resha_barrier *b, unsigned parties);
int audit_barrier_wait(resha_barrier *b);

int audit_limiter_init(resha_limiter *l, unsigned count, resha_duration per, unsigned burst);
int audit_limiter_init_rates(resha_limiter *l, const resha_rate *rates, size_t n);
int audit_limiter_acquire(resha_limiter *l);
int audit_limiter_acquire_by(resha_limiter *l, resha_instant t);
int audit_limiter_try_acquire(resha_limiter *l);

int audit_scope_end(resha_scope *s, int rc);
void audit_scope_leave(resha_scope *s);
int audit_group_end(resha_group *g, int rc);
void audit_group_leave(resha_group *g);

int audit_tcp_listen(const char *host, uint16_t port, resha_listener **ret_listener);
int audit_dgram_open(const resha_dgram_opts *opts, resha_dgram **ret_dgram);
int audit_listen(const resha_addr *addr, const resha_listen_opts *opts, resha_listener **ret_listener);
int audit_unix_listen(const char *path, const resha_listen_opts *opts, resha_listener **ret_listener);
int audit_stream_new(const resha_stream_ops *ops, void *impl, resha_stream **ret_stream);
int audit_stream_pair(resha_stream *ret_pair[2]);
int audit_pipe(resha_stream **ret_read, resha_stream **ret_write);

#ifndef AUDIT_INSIDE
#define resha_tcp_listen audit_tcp_listen
#define resha_listen audit_listen
#define resha_unix_listen audit_unix_listen
#define resha_stream_new audit_stream_new
#define resha_stream_pair audit_stream_pair
#define resha_pipe audit_pipe
#define resha_dgram_open audit_dgram_open
#define resha_run audit_run
#define resha_semaphore_init audit_semaphore_init
#define resha_semaphore_acquire audit_semaphore_acquire
#define resha_semaphore_try_acquire audit_semaphore_try_acquire
#define resha_semaphore_release audit_semaphore_release
#define resha_mutex_lock audit_mutex_lock
#define resha_mutex_try_lock audit_mutex_try_lock
#define resha_mutex_unlock audit_mutex_unlock
#define resha_condition_init audit_condition_init
#define resha_condition_wait audit_condition_wait
#define resha_condition_wait_for audit_condition_wait_for
#define resha_condition_notify audit_condition_notify
#define resha_condition_notify_all audit_condition_notify_all
#define resha_queue_new audit_queue_new
#define resha_queue_new_opt audit_queue_new_opt
#define resha_queue_free audit_queue_free
#define resha_queue_freep audit_queue_freep
#define resha_queue_put audit_queue_put
#define resha_queue_get audit_queue_get
#define resha_queue_try_put audit_queue_try_put
#define resha_queue_try_get audit_queue_try_get
#define resha_queue_shutdown_now audit_queue_shutdown_now
#define resha_channel_new audit_channel_new
#define resha_channel_new_opt audit_channel_new_opt
#define resha_sender_ref audit_sender_ref
#define resha_receiver_ref audit_receiver_ref
#define resha_sender_close audit_sender_close
#define resha_receiver_close audit_receiver_close
#define resha_sender_closep audit_sender_closep
#define resha_receiver_closep audit_receiver_closep
#define resha_send audit_send
#define resha_recv audit_recv
#define resha_try_send audit_try_send
#define resha_try_recv audit_try_recv
#define resha_event_set audit_event_set
#define resha_event_wait audit_event_wait
#define resha_select audit_select
#define resha_try_select audit_try_select
#define resha_barrier_init audit_barrier_init
#define resha_barrier_wait audit_barrier_wait
#define resha_limiter_init audit_limiter_init
#define resha_limiter_init_rates audit_limiter_init_rates
#define resha_limiter_acquire audit_limiter_acquire
#define resha_limiter_acquire_by audit_limiter_acquire_by
#define resha_limiter_try_acquire audit_limiter_try_acquire
#define resha_scope_end audit_scope_end
#define resha_scope_leave audit_scope_leave
#define resha_group_end audit_group_end
#define resha_group_leave audit_group_leave
#endif

#endif
