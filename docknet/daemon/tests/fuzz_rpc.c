// SPDX-License-Identifier: Apache-2.0
/* Control messages: whatever comes, there is an answer or a reason, and nothing is lost. */
#include "../rpc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_request request;
	struct rpc_error error;
	char reason[CONFIG_ERROR_SIZE];

	if (size > RPC_LINE_MAX)
		return 0;
	if (rpc_parse((const char *)data, size, &request, &error) == 0 && request.method == RPC_PIPE_ADD) {
		struct pipe_config again;
		json_t *object = pipe_config_to_json(&request.add);

		/* What was accepted is accepted when it comes back from the state file. */
		if (!object || pipe_config_from_json(object, &again, reason) < 0)
			abort();
		json_decref(object);
	}
	if (request.id) {
		char *line = rpc_answer(request.id, json_true(), &error);

		if (!line)
			abort();
		free(line);
	}
	rpc_request_release(&request);
	return 0;
}
