// SPDX-License-Identifier: GPL-2.0-or-later
#include "service_fixture.h"

#include "json_build.h"

static struct fixture *of(struct hvp_service *service)
{
	return (struct fixture *)service;
}

static void add_info(struct hvp_service *service, struct json_object *object)
{
	(void)service;
	hvp_json_add(object, "vcpus", json_object_new_int(2));
}

static void add_stats(struct hvp_service *service, struct json_object *object)
{
	hvp_json_add(object, "int3_patch", json_object_new_uint64(atomic_load(&of(service)->int3)));
}

static uint64_t int3_hits(struct hvp_service *service)
{
	return atomic_load(&of(service)->int3);
}

static bool is_paused(struct hvp_service *service)
{
	return atomic_load(&of(service)->paused);
}

static const struct hvp_method methods[] = {HVP_SERVICE_METHODS, {"echo", echo}, {NULL, NULL}};

int service_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	fake_init(&f->fake, FAKE_RAM);
	f->service = (struct hvp_service){
		.name = "vm",
		.guest = f->fake.guest,
		.add_info = add_info,
		.add_stats = add_stats,
		.int3_hits = int3_hits,
		.is_paused = is_paused,
	};
	server_start(&f->server, methods, f);
	f->fd = raw_open(&f->server);
	*state = f;
	return 0;
}

int service_setup_agent(void **state)
{
	service_setup(state);
	fake_hello(&((struct fixture *)*state)->fake);
	return 0;
}

int service_teardown(void **state)
{
	struct fixture *f = *state;

	close(f->fd);
	server_stop(&f->server);
	hvp_service_release(&f->service);
	fake_free(&f->fake);
	free(f);
	return 0;
}

uint64_t guest_fetch(struct fixture *f, unsigned int nr)
{
	int i;

	for (i = 0; i < ANSWER_S * 1000 && atomic_load(&f->fake.notifies) < nr; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&f->fake.notifies), nr);
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_FETCH), HVPOKE_OK);
	assert_int_not_equal(fake_cmd(&f->fake)->fetch.id, 0);
	return fake_cmd(&f->fake)->fetch.id;
}

struct hvpoke_complete *guest_completion(struct fixture *f, uint64_t id)
{
	struct hvpoke_complete *complete = &fake_cmd(&f->fake)->complete;

	memset(complete, 0, sizeof(*complete));
	complete->id = id;
	complete->bad_query = HVPOKE_NO_INDEX;
	return complete;
}

void guest_complete(struct fixture *f)
{
	assert_int_equal(fake_ring(&f->fake, HVPOKE_CMD_COMPLETE), HVPOKE_OK);
}

struct json_object *next(struct fixture *f, const char *kind)
{
	struct json_object *message = raw_message(f->fd), *body;

	assert_non_null(message);
	if (!json_object_object_get_ex(message, kind, &body))
		fail_msg("no %s in %s", kind, json_object_to_json_string(message));
	json_object_get(body);
	json_object_put(message);
	return body;
}

void expect_text(struct json_object *object, const char *key, const char *json)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		fail_msg("no %s in %s", key, json_object_to_json_string(object));
	assert_string_equal(json_object_to_json_string_ext(
				    value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
			    json);
}
