import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import { isKubeError } from "../../kube/errors.ts";
import { events, kindName } from "../../kube/resources.ts";
import type { TablePage } from "../../kube/tables.ts";
import { realClock } from "../../runtime/clock.ts";
import { openClusters, type ReadCluster } from "../multicluster/clusters.ts";
import { fanOut } from "../multicluster/fan-out.ts";
import { type ReadRequest, type StartedList, startReading } from "../multicluster/lists.ts";
import {
  objectArguments,
  READING_FLAGS,
  readingShape,
  requireNamed,
  requireShown,
} from "../multicluster/reading-flags.ts";
import { type Equip, equipped } from "../shared/command.ts";
import { Gaps } from "../shared/gaps.ts";
import { refusing, withGlobals } from "../shared/input.ts";
import type { Session } from "../shared/session.ts";
import { typeQueries } from "../shared/type-names.ts";
import { descriptionOf } from "./text.ts";

const EXAMPLE = "pods or deployments.apps";

export const command: Equip = equipped({
  description:
    "Shows objects of all members in full: metadata, each field as YAML, and the events of each. Members are reached as by " +
    "`legation get`. Values of Secrets are left out.",
  arguments: objectArguments(EXAMPLE),
  flags: READING_FLAGS,
  examples: {
    "describe pod web-0 -n shop": "a pod in each member that has one of this name",
    "describe nodes --clusters west": "all nodes of a member",
    "describe deploy -n shop -l app=web --clusters region=eu": "in members with a label",
  },
  input: withGlobals({ type: z.string(), names: z.array(z.string()).default([]), ...readingShape }).transform(
    ({ type, names, ...rest }, context) => {
      const queries = typeQueries(type, names, context, EXAMPLE);
      if (rest.selector !== undefined && queries.some((query) => query.names.length > 0)) {
        refusing(context)("selector", "contradicts a name; give one of them");
      }
      return { ...rest, queries };
    },
  ),
  working: "reading",
  run: async (options, session) => {
    const { client, namespace: current } = await session.connect(options, "host");
    const { queries, namespace = current, selector: labelSelector, timeout: timeoutMs, strict } = options;
    const clusters = await openClusters(client, options.clusters, { choice: options, session, namespace });
    const request: ReadRequest = { queries, namespace, labelSelector, includeObject: "Object", timeoutMs };
    const gaps = new Gaps((line) => session.terminal.progress(line));
    const context = { gaps, signal: session.signal };
    const readings = fanOut(clusters, realClock, (cluster) => startReading(cluster, request, context));
    const answers = await Promise.all(readings);
    let isFirst = true;
    for (const { cluster, lists } of answers) {
      for (const list of lists) {
        for await (const text of descriptionsOf(cluster, list, { request, gaps, session })) {
          session.terminal.print(isFirst ? text : `\n${text}`);
          isFirst = false;
        }
      }
    }
    requireNamed(answers);
    requireShown(queries.map(({ word }) => word).join(","), { gaps, clusters, strict });
  },
});

interface DescribeContext {
  readonly request: ReadRequest;
  readonly gaps: Gaps;
  readonly session: Session;
}

async function* descriptionsOf(
  cluster: ReadCluster,
  list: StartedList,
  { request, gaps, session: { signal, terminal } }: DescribeContext,
): AsyncGenerator<string> {
  try {
    for await (const page of list.pages()) {
      for (const { object } of page.rows) {
        const read = await eventsOf(cluster, list, object, { signal, timeoutMs: request.timeoutMs });
        yield descriptionOf({ cluster: cluster.name, object, events: read }, terminal.width);
      }
    }
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    gaps.add(cluster.name, `${kindName(list.resource)}: ${error.detail}`);
  }
}

/** Reads an object's events, oldest first. Undefined if they cannot be read. */
async function eventsOf(
  { client }: ReadCluster,
  { resource }: StartedList,
  { metadata = {} }: KubeObject,
  options: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<TablePage | undefined> {
  const { namespace, name = "", uid = "" } = metadata;
  // The kubelet gives a node's name as the uid of its events, which are in the namespace default.
  const of = resource.namespaced ? `involvedObject.uid=${uid}` : `involvedObject.kind=${resource.kind}`;
  try {
    const found = await client.listTable(events, {
      ...(namespace === undefined ? {} : { namespace }),
      fieldSelector: `involvedObject.name=${name},${of}`,
      includeObject: "Object",
      dropManagedFields: true,
      ...options,
    });
    return { ...found, rows: found.rows.toSorted((a, b) => (timeOf(a.object) < timeOf(b.object) ? -1 : 1)) };
  } catch (error) {
    if (!isKubeError(error)) throw error;
    options.signal.throwIfAborted();
    return undefined;
  }
}

const eventTimes = z.looseObject({ lastTimestamp: z.string().nullish(), eventTime: z.string().nullish() });

function timeOf(event: KubeObject): string {
  const { lastTimestamp, eventTime } = eventTimes.catch({}).parse(event);
  return lastTimestamp ?? eventTime ?? event.metadata?.creationTimestamp ?? "";
}
