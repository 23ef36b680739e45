/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TEST_SERVICE_FIXTURE_H
#define TEST_SERVICE_FIXTURE_H

#include "control_server.h"
#include "fake_backend.h"
#include "service.h"

/* A VM without a VMM: the service methods behind a real socket, the test as the guest. */
struct fixture {
	struct hvp_service service; /* first: it is the methods' ctx */
	struct fake fake;
	struct server server;
	atomic_ulong int3;
	atomic_bool paused;
	int fd;
};

int service_setup(void **state);
/* The same with an agent registered. */
int service_setup_agent(void **state);
int service_teardown(void **state);

/* Wait until the guest is interrupted for the @nr-th time, and fetch. Returns the request's id. */
uint64_t guest_fetch(struct fixture *f, unsigned int nr);
/* The command page, to be filled in further, and then handed in by guest_complete(). */
struct hvpoke_complete *guest_completion(struct fixture *f, uint64_t id);
void guest_complete(struct fixture *f);

/* The "result" (or "error") of the next message; the caller puts it. */
struct json_object *next(struct fixture *f, const char *kind);
/* @object's member @key is @json. */
void expect_text(struct json_object *object, const char *key, const char *json);

#endif /* TEST_SERVICE_FIXTURE_H */
