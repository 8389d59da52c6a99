/* SPDX-License-Identifier: MIT */
#ifndef RESHA_H
#define RESHA_H

/* The core of resha in one include. <resha/tls.h>, <resha/http.h> and <resha/sqlite.h> are libraries of their own;
 * <resha/test.h> is for tests. */

#include <resha/addr.h>
#include <resha/alloc.h>
#include <resha/barrier.h>
#include <resha/base.h>
#include <resha/channel.h>
#include <resha/combine.h>
#include <resha/condition.h>
#include <resha/datagram.h>
#include <resha/embed.h>
#include <resha/error.h>
#include <resha/event.h>
#include <resha/fd.h>
#include <resha/file.h>
#include <resha/group.h>
#include <resha/inspect.h>
#include <resha/limiter.h>
#include <resha/listener.h>
#include <resha/local.h>
#include <resha/loop.h>
#include <resha/loops.h>
#include <resha/mutex.h>
#include <resha/pool.h>
#include <resha/portal.h>
#include <resha/process.h>
#include <resha/queue.h>
#include <resha/run.h>
#include <resha/scope.h>
#include <resha/select.h>
#include <resha/semaphore.h>
#include <resha/shown.h>
#include <resha/signal.h>
#include <resha/stats.h>
#include <resha/stream.h>
#include <resha/task.h>
#include <resha/time.h>
#include <resha/workers.h>

#endif
