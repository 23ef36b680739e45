// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdarg.h>
#include <stdio.h>

#include "message.h"

int message_set(struct message *message, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(message->text, sizeof(message->text), fmt, args);
	va_end(args);
	return err;
}
