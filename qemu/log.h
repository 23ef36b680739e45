/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVPOKED_LOG_H
#define HVPOKED_LOG_H

#include <syslog.h>

/*
 * One line to stderr, in one write, from any thread. @priority is LOG_ERR,
 * LOG_WARNING, LOG_NOTICE or LOG_INFO; the journal gets it as the prefix that
 * sd-daemon(3) describes, a terminal does not see it.
 */
void say(int priority, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif /* HVPOKED_LOG_H */
