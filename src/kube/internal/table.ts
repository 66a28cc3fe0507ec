import type { TableOptions, WatchOptions } from "../client.ts";
import { yieldToEventLoop } from "../event-loop.ts";
import { isJsonObject } from "../json.ts";
import type { KubeObject } from "../objects.ts";
import type { Resource } from "../resources.ts";
import { parseTable, type TableEvent, type TablePage } from "../tables.ts";
import { jsonOf } from "./answers.ts";
import type { ApiRequest } from "./request-sender.ts";
import { listPath, objectPath, withQuery } from "./resource-paths.ts";
import type { Transport } from "./transport.ts";
import { parseLine, unexpectedEvent, watchLines, watchRequest } from "./watch.ts";

// The second one is for servers without tables.
const ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/** Reads one page of a list, or one object, as a table; see `TableReads`. */
export async function listTable(
  transport: Transport,
  resource: Resource<KubeObject>,
  options: TableOptions,
): Promise<TablePage> {
  const { namespace, name, includeObject, signal, timeoutMs, dropManagedFields } = options;
  const path =
    name === undefined
      ? listPath(resource, options, { includeObject })
      : withQuery(objectPath(resource, { namespace, name }), { includeObject });
  const request: ApiRequest = {
    verb: name === undefined ? "list" : "get",
    method: "GET",
    plural: resource.plural,
    namespace,
    name,
    path,
    accept: ACCEPT,
    signal,
    timeoutMs,
  };
  const { text } = await transport.send(request);
  await yieldToEventLoop();
  const table = parseTable(jsonOf(transport, { text, request, dropManagedFields }));
  if (table === undefined) throw transport.error("BadAnswer", "the answer is not a table", request);
  return table;
}

/** Yields the events of one watch as tables; see `TableReads`. */
export async function* watchTable(
  transport: Transport,
  resource: Resource<KubeObject>,
  options: WatchOptions & Pick<TableOptions, "includeObject">,
): AsyncGenerator<TableEvent> {
  const { includeObject } = options;
  const request = { ...watchRequest(resource, options, { includeObject }), accept: ACCEPT };
  for await (const lines of watchLines(transport, request, options)) {
    for (const line of lines) {
      const { type, object } = parseLine(line, options, transport, request).event;
      const table = parseTable(object);
      if (table !== undefined && (type === "ADDED" || type === "MODIFIED" || type === "DELETED")) {
        yield { type, table };
      } else if (type === "BOOKMARK" && isJsonObject(object)) {
        yield { type, resourceVersion: table?.resourceVersion ?? "" };
      } else throw unexpectedEvent(type, transport, request);
    }
  }
}
