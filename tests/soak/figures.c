// SPDX-License-Identifier: GPL-2.0-or-later
#include "figures.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

double soak_wanted(const char *name, double otherwise)
{
	const char *text = getenv(name);
	char *end;
	double value;

	if (!text || !*text)
		return otherwise;
	value = strtod(text, &end);
	if (*end || !(value > 0))
		fail_msg("%s: expected a number above 0, got \"%s\"", name, text);
	return value;
}

void soak_count(struct json_object *figures, const char *name, uint64_t value)
{
	print_message("# %s: %" PRIu64 "\n", name, value);
	json_object_object_add(figures, name, json_object_new_uint64(value));
}

void soak_number(struct json_object *figures, const char *name, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.1f", value);
	print_message("# %s: %s\n", name, text);
	json_object_object_add(figures, name, json_object_new_double_s(value, text));
}

void soak_vitals(struct json_object *figures, const char *name, const struct vitals_log *log)
{
	struct json_object *samples = json_object_new_array();

	for (unsigned int i = 0; i < log->nr; i++) {
		const struct vitals *vitals = &log->sample[i];
		struct json_object *sample = json_object_new_object();

		json_object_object_add(sample, "rss_kib", json_object_new_uint64(vitals->rss_kib));
		json_object_object_add(sample, "anon_kib",
				       json_object_new_uint64(vitals->anon_kib));
		json_object_object_add(sample, "descriptors",
				       json_object_new_int64(vitals->descriptors));
		json_object_object_add(sample, "threads", json_object_new_int64(vitals->threads));
		json_object_array_add(samples, sample);
	}
	json_object_object_add(figures, name, samples);
}

void soak_write(struct json_object *figures)
{
	const char *path = getenv("SOAK_JSON");

	if (path)
		assert_int_equal(json_object_to_file_ext(path, figures, JSON_C_TO_STRING_PRETTY),
				 0);
	json_object_put(figures);
}
