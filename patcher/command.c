// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The doorbell. Each command's IN fields are copied out of the guest's page
 * once and never looked at again; its OUT fields are the only bytes of that page
 * that are written. A guest that names a page it needs for something else
 * (its own text, a page of the list) spoils that page for itself.
 */
#include <string.h>

#include "batch.h"
#include "copy.h"
#include "hello.h"
#include "list.h"

/* From one field to the end of another, both of the same struct. */
#define SPAN(type, from, to) (offsetof(type, to) + sizeof(((type *)0)->to) - offsetof(type, from))

static enum hvpoke_status command_hello(struct hvp_guest *guest, struct hvpoke_hello *in_guest)
{
	struct hvpoke_hello hello;
	enum hvpoke_status status;

	hvp_copy_in(&hello, in_guest, sizeof(hello));
	status = hvp_hello(guest, &hello);
	hvp_copy_out(&in_guest->features, &hello.features, sizeof(hello.features));
	hvp_copy_out(&in_guest->max_sites, &hello.max_sites,
		     SPAN(struct hvpoke_hello, max_sites, bad_index));
	return status;
}

static enum hvpoke_status command_batch(struct hvp_guest *guest, struct hvpoke_batch *in_guest)
{
	struct hvp_batch_result result;
	struct hvpoke_batch batch;

	hvp_copy_in(&batch, in_guest, sizeof(batch));
	hvp_batch(guest, &batch, &result);
	batch.bad_index = result.bad_index;
	batch.written = result.written;
	batch.pause_ns = result.pause_ns;
	batch.apply_ns = result.apply_ns;
	hvp_copy_out(&in_guest->bad_index, &batch.bad_index,
		     SPAN(struct hvpoke_batch, bad_index, apply_ns));
	return result.status;
}

static enum hvpoke_status command_fetch(struct hvp_guest *guest, struct hvpoke_fetch *in_guest)
{
	enum hvpoke_status status;
	struct hvpoke_fetch fetch;

	status = hvp_request_fetch(guest, &fetch);
	if (status == HVPOKE_OK)
		hvp_copy_out(in_guest, &fetch, sizeof(fetch));
	return status;
}

static enum hvpoke_status command_complete(struct hvp_guest *guest,
					   const struct hvpoke_complete *in_guest)
{
	struct hvpoke_complete complete;

	hvp_copy_in(&complete, in_guest, sizeof(complete));
	return hvp_request_complete(guest, &complete);
}

/* @header: the host's copy; of @page only the part that belongs to the command is read. */
static enum hvpoke_status dispatch(struct hvp_guest *guest, const struct hvpoke_cmd *header,
				   struct hvpoke_cmd *page)
{
	if (header->version != HVPOKE_ABI_VERSION)
		return HVPOKE_BAD_VERSION;
	if (header->reserved)
		return HVPOKE_BAD_HEADER;
	switch (header->cmd) {
	case HVPOKE_CMD_HELLO: return command_hello(guest, &page->hello);
	case HVPOKE_CMD_BATCH: return command_batch(guest, &page->batch);
	case HVPOKE_CMD_FETCH: return command_fetch(guest, &page->fetch);
	case HVPOKE_CMD_COMPLETE: return command_complete(guest, &page->complete);
	case HVPOKE_CMD_BYE: return hvp_bye(guest);
	default: return HVPOKE_BAD_COMMAND;
	}
}

enum hvpoke_status hvp_guest_command(struct hvp_guest *guest, gpa_t page)
{
	struct hvpoke_cmd *in_guest = hvp_page_at(guest->backend, guest->ctx, page);
	struct hvpoke_cmd header;
	uint32_t status;

	if (!in_guest)
		return HVPOKE_BAD_GPA;
	hvp_copy_in(&header, in_guest, offsetof(struct hvpoke_cmd, hello));
	status = dispatch(guest, &header, in_guest);
	hvp_copy_out(&in_guest->status, &status, sizeof(status));
	return status;
}
