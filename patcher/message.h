/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_MESSAGE_H
#define HVP_MESSAGE_H

/*
 * What went wrong, for a person: what was expected, what came, what to do.
 * Whoever prints it puts the program's name in front.
 */
struct message {
	char text[1024];
};

/* Set the text (too long a one is cut) and return @err, so that `return message_set(...)` works. */
int message_set(struct message *message, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* HVP_MESSAGE_H */
