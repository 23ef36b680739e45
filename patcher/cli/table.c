// SPDX-License-Identifier: GPL-2.0-or-later
/* Results: one line of JSON for programs, aligned words for people, of the same data. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "text.h"

#define LABEL_SIZE 64

int print_json(const struct options *options, struct json_object *object)
{
	const char *text = json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!text || !hvp_json_whole(object))
		return report_memory(options);
	puts(text);
	return DONE;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len > end_len && !strcmp(text + len - end_len, end);
}

static char *microseconds_text(double us)
{
	char *text = NULL;
	int len;

	if (us < 10000)
		len = asprintf(&text, "%.1f us", us);
	else if (us < 10000000)
		len = asprintf(&text, "%.1f ms", us / 1000);
	else
		len = asprintf(&text, "%.1f s", us / 1000000);
	return need(len < 0 ? NULL : text);
}

static char *bytes_text(uint64_t bytes)
{
	char *text = NULL;
	int len;

	if (bytes % (1u << 20))
		len = asprintf(&text, "%" PRIu64 " bytes", bytes);
	else
		len = asprintf(&text, "%" PRIu64 " MiB", bytes >> 20);
	return need(len < 0 ? NULL : text);
}

char *value_text(const char *key, struct json_object *value)
{
	const char *string;
	char *text;

	if (!value)
		return need(strdup("-"));
	if (json_object_is_type(value, json_type_boolean))
		return need(strdup(json_object_get_boolean(value) ? "yes" : "no"));
	if (ends_with(key, "_us"))
		return microseconds_text(json_object_get_double(value));
	if (!strcmp(key, "memory"))
		return bytes_text(json_object_get_uint64(value));
	string = json_object_get_string(value);
	text = need(string ? strdup(string) : NULL);
	hvp_text_clean(text);
	return text;
}

/* "agent" and "max_pause_us": "agent max pause". */
static void make_label(char *label, const char *prefix, const char *key)
{
	size_t len = strlen(key);
	char *at;

	if (ends_with(key, "_us"))
		len -= 3;
	snprintf(label, LABEL_SIZE, "%s%s%.*s", prefix, *prefix ? " " : "", (int)len, key);
	hvp_text_clean(label);
	for (at = label; *at; at++)
		if (*at == '_')
			*at = ' ';
}

static int widest_label(struct json_object *object, const char *prefix)
{
	char label[LABEL_SIZE];
	int widest = 0, width;

	json_object_object_foreach(object, key, value)
	{
		make_label(label, prefix, key);
		width = json_object_is_type(value, json_type_object) ? widest_label(value, label)
								     : (int)strlen(label);
		if (width > widest)
			widest = width;
	}
	return widest;
}

static void print_members(struct json_object *object, const char *prefix, int width)
{
	char label[LABEL_SIZE];
	char *text;

	json_object_object_foreach(object, key, value)
	{
		make_label(label, prefix, key);
		if (json_object_is_type(value, json_type_object)) {
			print_members(value, label, width);
			continue;
		}
		text = value_text(key, value);
		printf("%-*s  %s\n", width, label, text);
		free(text);
	}
}

void print_object(struct json_object *object)
{
	print_members(object, "", widest_label(object, ""));
}

void print_rows(const char *const *titles, int nr_columns, const struct row *rows, int nr_rows)
{
	int widths[sizeof(rows->cells) / sizeof(rows->cells[0])];
	int column, row, width;

	for (column = 0; column < nr_columns; column++) {
		widths[column] = titles ? (int)strlen(titles[column]) : 0;
		for (row = 0; row < nr_rows; row++) {
			width = rows[row].cells[column] ? (int)strlen(rows[row].cells[column]) : 1;
			if (width > widths[column])
				widths[column] = width;
		}
	}
	for (row = titles ? -1 : 0; row < nr_rows; row++) {
		for (column = 0; column < nr_columns; column++) {
			const char *cell = row < 0 ? titles[column] : rows[row].cells[column];

			/* No spaces at the end of a line. */
			width = column == nr_columns - 1 ? 0 : widths[column];
			printf("%s%-*s", column ? "  " : "", width, cell ? cell : "-");
		}
		putchar('\n');
	}
}

void free_rows(struct row *rows, int nr_rows)
{
	for (int row = 0; row < nr_rows; row++)
		for (size_t column = 0; column < sizeof(rows->cells) / sizeof(rows->cells[0]);
		     column++)
			free(rows[row].cells[column]);
	free(rows);
}
