/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_SOAK_FIGURES_H
#define TESTS_SOAK_FIGURES_H

#include <json-c/json.h>

#include "vitals.h"

/* A number from the environment: how long a soak is to be. @otherwise if it is not there. */
double soak_wanted(const char *name, double otherwise);

/* Both print a TAP comment, and add to @figures. */
void soak_count(struct json_object *figures, const char *name, uint64_t value);
void soak_number(struct json_object *figures, const char *name, double value);
void soak_vitals(struct json_object *figures, const char *name, const struct vitals_log *log);

/* Into the file that $SOAK_JSON names, if it does. Takes @figures. */
void soak_write(struct json_object *figures);

#endif /* TESTS_SOAK_FIGURES_H */
