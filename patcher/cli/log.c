// SPDX-License-Identifier: GPL-2.0-or-later
/* hvpoke log [--count N] [--follow] VM */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json_build.h"
#include "text.h"

#define DEFAULT_COUNT 20
#define LOOK_AGAIN_S  1

static const char *text_at(struct json_object *record, const char *key)
{
	const char *text = json_object_get_string(json_object_object_get(record, key));

	return text ? text : "";
}

static uint64_t number_at(struct json_object *record, const char *key)
{
	return json_object_get_uint64(json_object_object_get(record, key));
}

static bool is_kind(struct json_object *record, const char *kind)
{
	return !strcmp(text_at(record, "kind"), kind);
}

/* A cell of a row; strings of a VM's are made fit for a terminal. */
static char *cell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *cell(const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	hvp_text_clean(need(text));
	return text;
}

/* 2026-12-01T07:31:29.123Z: as it is, but for the letters. */
static char *time_cell(struct json_object *record)
{
	char *text = cell("%s", text_at(record, "time"));
	char *at;

	for (at = text; *at; at++)
		if (*at == 'T')
			*at = ' ';
	return text;
}

static char *by_cell(struct json_object *record)
{
	if (is_kind(record, "more"))
		return cell("guest");
	if (strcmp(text_at(record, "by"), "client") != 0)
		return cell("%s", text_at(record, "by"));
	return cell("uid %" PRIu64 ", pid %" PRIu64, number_at(record, "uid"),
		    number_at(record, "pid"));
}

static char *what_cell(struct json_object *record)
{
	uint64_t undoes = number_at(record, "undoes");

	if (is_kind(record, "more"))
		return cell("and %" PRIu64 " more batches", number_at(record, "count"));
	if (undoes)
		return cell("batch, undoes %" PRIu64, undoes);
	if (is_kind(record, "batch") && strcmp(text_at(record, "by"), "client") != 0)
		return cell("batch");
	return cell("%s%s %s%s", is_kind(record, "batch") ? "batch: " : "",
		    text_at(record, "method"), text_at(record, "what"),
		    *text_at(record, "via") ? " (native)" : "");
}

static char *result_cell(struct json_object *record)
{
	struct json_object *bad = NULL;

	if (json_object_object_get_ex(record, "bad_index", &bad))
		return cell("%s at site %" PRIu64, text_at(record, "status"),
			    json_object_get_uint64(bad));
	if (!is_kind(record, "request"))
		return cell("%s", text_at(record, "status"));
	if (*text_at(record, "fallback"))
		return cell("%s, natively: %s", text_at(record, "ended"),
			    text_at(record, "fallback"));
	return cell("%s%s%s", text_at(record, "ended"), *text_at(record, "message") ? ": " : "",
		    text_at(record, "message"));
}

static void print_records(struct json_object *records, bool with_titles)
{
	static const char *const titles[] = {"ID",    "TIME",	"BY",  "SITES",
					     "PAUSE", "RESULT", "WHAT"};
	size_t nr = json_object_array_length(records), i;
	struct row *rows = need(calloc(nr, sizeof(*rows)));

	for (i = 0; i < nr; i++) {
		struct json_object *record = json_object_array_get_idx(records, i);

		rows[i].cells[0] = cell("%" PRIu64, number_at(record, "id"));
		rows[i].cells[1] = time_cell(record);
		rows[i].cells[2] = by_cell(record);
		rows[i].cells[3] = value_text("sites", json_object_object_get(record, "sites"));
		rows[i].cells[4] =
			value_text("pause_us", json_object_object_get(record, "pause_us"));
		rows[i].cells[5] = result_cell(record);
		rows[i].cells[6] = what_cell(record);
	}
	print_rows(with_titles ? titles : NULL, sizeof(titles) / sizeof(titles[0]), rows, (int)nr);
	free_rows(rows, (int)nr);
}

/* What is not among the records. */
static void print_missing(struct json_object *result)
{
	uint64_t lost = number_at(result, "lost"), unrecorded = number_at(result, "unrecorded");

	if (unrecorded)
		fprintf(stderr,
			"hvpoke: %" PRIu64 " batches more came too fast to be recorded one by one; "
			"a record will say so\n",
			unrecorded);
	if (lost) {
		char *file = cell("%s", text_at(result, "file"));

		fprintf(stderr,
			"hvpoke: %" PRIu64 " records could not be written to %s and are lost\n",
			lost, file);
		free(file);
	}
}

static int show(const struct options *options, struct json_object *result, bool first,
		uint64_t *after)
{
	struct json_object *records = json_object_object_get(result, "records");
	int err = DONE;
	size_t nr;

	if (!json_object_is_type(records, json_type_array))
		return report(options, FAILED, "bad-answer", NULL,
			      "VM \"%s\": records were expected, and none came; is its hvpoke of "
			      "this version?",
			      options->args[0]);
	nr = json_object_array_length(records);
	if (nr)
		*after = number_at(json_object_array_get_idx(records, nr - 1), "id");
	for (size_t i = 0; i < nr && options->json && !err; i++)
		err = print_json(options, json_object_array_get_idx(records, i));
	if (!options->json && nr)
		print_records(records, first);
	else if (!options->json && first && !options->follow)
		fputs("hvpoke: nothing is recorded of this VM yet\n", stderr);
	if (first && !options->json)
		print_missing(result);
	fflush(stdout);
	return err;
}

static int ask(const struct options *options, struct hvp_client *client, unsigned int count,
	       bool first, uint64_t *after)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	int err;

	hvp_json_add(params, "count", json_object_new_int64(count));
	hvp_json_add(params, "after", json_object_new_uint64(*after));
	err = check_made(options, params);
	if (err)
		return err;
	err = vm_ask(options, client, options->args[0], "log", params, CHANGE_TIMEOUT_MS, false,
		     &result);
	if (!err)
		err = show(options, result, first, after);
	json_object_put(result);
	return err;
}

int cmd_log(const struct options *options)
{
	struct hvp_client *client = NULL;
	uint64_t after = 0;
	int err = vm_connect(options, options->args[0], &client);

	if (err)
		return err;
	err = ask(options, client, options->count ? options->count : DEFAULT_COUNT, true, &after);
	while (!err && options->follow) {
		sleep(LOOK_AGAIN_S);
		err = ask(options, client, MAX_COUNT, false, &after);
	}
	hvp_client_close(client);
	return err;
}
