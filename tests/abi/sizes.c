/* SPDX-License-Identifier: MIT */
/* Sizes of what lives on the caller's stack or is handed over by its fields: programs have them compiled in, so that a
 * change here breaks every program that is not compiled again. Checked on 64-bit machines. */

#include <resha/http.h>
#include <resha/resha.h>
#include <resha/sqlite.h>
#include <resha/test.h>
#include <resha/tls.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), #type)

#if UINTPTR_MAX == UINT64_MAX
SIZE(resha_addr, 136);
SIZE(resha_barrier, 48);
SIZE(resha_completions, 384);
SIZE(resha_completions_opts, 40);
SIZE(resha_condition, 32);
SIZE(resha_connect_opts, 40);
SIZE(resha_bytes, 48);
SIZE(resha_call, 24);
SIZE(resha_case, 96);
SIZE(resha_channel_opts, 40);
SIZE(resha_dgram_opts, 64);
SIZE(resha_dir_entry, 40);
SIZE(resha_doing, 64);
SIZE(resha_duration, 8);
SIZE(resha_error, 288);
SIZE(resha_event, 24);
SIZE(resha_figure, 24);
SIZE(resha_gather_opts, 64);
SIZE(resha_group, 256);
SIZE(resha_group_opts, 56);
SIZE(resha_instant, 8);
SIZE(resha_job_opts, 40);
SIZE(resha_listen_opts, 48);
SIZE(resha_limiter, 320);
SIZE(resha_local, 24);
SIZE(resha_locals, 16);
SIZE(resha_message, 192);
SIZE(resha_mutex, 32);
SIZE(resha_output, 32);
SIZE(resha_pool_opts, 48);
SIZE(resha_portal_handle, 512);
SIZE(resha_portal_opts, 40);
SIZE(resha_exit, 8);
SIZE(resha_process_opts, 128);
SIZE(resha_queue_opts, 56);
SIZE(resha_race_opts, 48);
SIZE(resha_report, 72);
SIZE(resha_rate, 24);
SIZE(resha_retry_opts, 104);
SIZE(resha_run_opts, 120);
SIZE(resha_save_opts, 40);
SIZE(resha_scope, 128);
SIZE(resha_semaphore, 32);
SIZE(resha_separator, 16);
SIZE(resha_serve_opts, 48);
SIZE(resha_shown, 128);
SIZE(resha_shown_kind, 64);
SIZE(resha_signal_info, 64);
SIZE(resha_spawn_opts, 72);
SIZE(resha_sqlite_counts, 64);
SIZE(resha_sqlite_opts, 96);
SIZE(resha_stat, 128);
SIZE(resha_stats, 480);
SIZE(resha_stream_ops, 112);
SIZE(resha_task, 48);
SIZE(resha_test_opts, 192);
SIZE(resha_test_result, 760);
SIZE(resha_test_trial, 112);
SIZE(resha_ticker, 32);
SIZE(resha_tls_info, 960);
SIZE(resha_tls_name, 56);
SIZE(resha_tls_opts, 208);
SIZE(resha_tls_serve_opts, 88);
SIZE(resha_tls_start_opts, 56);
SIZE(resha_value, 24);
SIZE(resha_workers_opts, 88);
SIZE(resha_http_attempt, 120);
SIZE(resha_http_header, 16);
SIZE(resha_http_opts, 192);
SIZE(resha_http_timings, 40);
SIZE(resha_http_transport, 56);
SIZE(resha_request, 144);
SIZE(resha_sqlite_counts, 64);
SIZE(resha_sqlite_opts, 96);
SIZE(resha_value, 24);
#endif

int main(void)
{
        return 0; /* the checks are made when this is compiled */
}
