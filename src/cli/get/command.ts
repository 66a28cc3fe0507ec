import { z } from "zod";
import { counted } from "../../api/wording.ts";
import { kindName } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { openClusters, type ReadCluster } from "../multicluster/clusters.ts";
import { fanOut } from "../multicluster/fan-out.ts";
import { type ClusterAnswer, type ReadRequest, startReading } from "../multicluster/lists.ts";
import {
  objectArguments,
  READING_FLAGS,
  readingShape,
  requireNamed,
  requireShown,
} from "../multicluster/reading-flags.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { Failure } from "../shared/failure.ts";
import { Gaps } from "../shared/gaps.ts";
import { refusing, toggle, withFormats } from "../shared/input.ts";
import { formatOf, some } from "../shared/output.ts";
import type { Terminal } from "../shared/terminal.ts";
import { typeQueries } from "../shared/type-names.ts";
import { documentPrinter, type ListPrinter, listPrinter, namePrinter } from "./printers.ts";
import { type ShowContext, showLists } from "./show.ts";
import { TablePrinter } from "./table-printer.ts";
import { ClusterWatch } from "./watch.ts";

const EXAMPLE = "pods, deployments.apps or pods,services";

const input = withFormats(
  {
    type: z.string(),
    names: z.array(z.string()).default([]),
    allNamespaces: toggle,
    fieldSelector: z.string().optional(),
    watch: toggle,
    outputWatchEvents: toggle,
    showLabels: toggle,
    ...readingShape,
  },
  formatOf("name"),
).transform(({ type, names, ...rest }, context) => {
  const queries = typeQueries(type, names, context, EXAMPLE);
  const refuse = refusing(context);
  const named = queries.flatMap((query) => query.names);
  if (named.length > 0 && rest.allNamespaces) {
    refuse("allNamespaces", "contradicts a name; give -n, or --field-selector metadata.name=NAME");
  }
  if (named.length > 0 && (rest.selector ?? rest.fieldSelector) !== undefined) {
    refuse(rest.selector === undefined ? "fieldSelector" : "selector", "contradicts a name; give one of them");
  }
  if (rest.watch && (queries.length > 1 || named.length > 1)) {
    refuse("watch", "is for one type, or for one object; run several commands");
  }
  if (rest.outputWatchEvents && !rest.watch) refuse("outputWatchEvents", "is for -w; add it");
  return { ...rest, queries };
});
type GetInput = z.output<typeof input>;

export const command: Equip = equipped({
  description:
    "Shows objects of all members in one table, as kubectl shows those of one cluster. Members are reached through the host's " +
    "API server with your own credentials there, so each member shows what your user may see. Many are asked at once; one that " +
    "does not answer, or has no such type, is named on standard error, and the rest is shown.",
  arguments: objectArguments(EXAMPLE),
  flags: [
    ...READING_FLAGS,
    ...flags({
      "-A, --all-namespaces": "objects of all namespaces",
      "--field-selector <selector>": "only objects with such fields, e.g. status.phase=Running",
      "-w, --watch": "go on with each change; a line says when a member is lost, and when it is back",
      "--output-watch-events": "with -w: say of each row what happened",
      "--show-labels": "show labels, too",
    }),
  ],
  examples: {
    "get pods -A": "all pods of all members",
    "get deploy,svc -n shop -o wide": "several types",
    "get nodes --clusters west,host": "in one member and on the host",
    "get pods -A --clusters region=eu --field-selector status.phase=Pending": "in members with a label",
    "get job/sweep -n shop -w": "follow one object",
    "get pods -A -o json --strict | jq -r '.items[].metadata.annotations[\"access.legation.dev/cluster\"]'": "a script",
  },
  input,
  working: "reading",
  run: async (options, session) => {
    const { client, namespace: current } = await session.connect(options, "host");
    const namespace = options.namespace ?? current;
    const request = requestOf(options, namespace);
    const clusters = await openClusters(client, options.clusters, { choice: options, session, namespace });
    const gaps = new Gaps((line) => session.terminal.progress(line));
    const printer = printerOf(options, session.terminal);
    const { signal } = session;
    const context = { printer, gaps, clock: realClock, signal, terminal: session.terminal };
    await (options.watch ? watchAll : showAll)(clusters, request, context);
    const object = options.queries.map(({ word }) => word).join(",");
    requireShown(object, { gaps, clusters, strict: options.strict });
  },
});

function requestOf(options: GetInput, namespace: string): ReadRequest {
  const { queries, allNamespaces, selector, fieldSelector, watch, output, timeout } = options;
  const [query] = queries;
  const name = query?.names[0];
  // A list of one object can be watched.
  const asList = watch && query !== undefined && name !== undefined;
  return {
    queries: asList ? [{ word: query.word, names: [] }] : queries,
    namespace: allNamespaces ? undefined : namespace,
    ownNamespace: namespace,
    labelSelector: selector,
    fieldSelector: asList ? `metadata.name=${name}` : fieldSelector,
    includeObject: output === "json" || output === "yaml" ? "Object" : "Metadata",
    timeoutMs: timeout,
  };
}

function printerOf(options: GetInput, terminal: Terminal): ListPrinter {
  const { output, watch, outputWatchEvents: events, allNamespaces, showLabels } = options;
  const write = (text: string): void => terminal.write(text);
  if (output === "name") return namePrinter(write);
  if (output === "json" || output === "yaml") {
    return watch ? documentPrinter(write, { format: output, events }) : listPrinter(write, output);
  }
  return new TablePrinter(terminal, { wide: output === "wide", showLabels, events, allNamespaces });
}

interface GetContext extends ShowContext {
  readonly terminal: Terminal;
}

async function showAll(clusters: readonly ReadCluster[], request: ReadRequest, context: GetContext): Promise<void> {
  const answers = fanOut(clusters, context.clock, (cluster) => startReading(cluster, request, context));
  const shown = await showLists(answers, context);
  context.printer.end?.();
  requireNamed(await Promise.all(answers));
  if (shown > 0 || context.gaps.lacking.length > 0) return;
  const where = request.namespace === undefined ? "" : ` in namespace ${request.namespace}`;
  context.terminal.progress(`No resources found${where} of ${counted(clusters.length, "cluster")}.`);
}

async function watchAll(clusters: readonly ReadCluster[], request: ReadRequest, context: GetContext): Promise<void> {
  const { terminal } = context;
  const mark = (line: string): void => terminal.progress(terminal.paintProgress("yellow", line));
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  const answers = fanOut(clusters, context.clock, (cluster) => startReading(cluster, request, context));
  const watches = clusters.map((cluster) => ({
    cluster: cluster.name,
    shown: Promise.withResolvers<ClusterAnswer>(),
    watch: new ClusterWatch(cluster, request, { ...context, signal, mark }),
  }));
  const onPage: ShowContext["onPage"] = (list, page) =>
    watches.find(({ cluster }) => cluster === list.cluster)?.watch.note(list, page);
  const onShown = (answer: ClusterAnswer): void =>
    watches.find(({ cluster }) => cluster === answer.cluster.name)?.shown.resolve(answer);
  const listing = showLists(
    answers.map(async (answer) => onlyType(await answer)),
    { ...context, onPage, onShown },
  );
  // Each is watched once its list was printed: a member that does not answer delays no news of others.
  const watching = watches.map(async ({ shown, watch }) => {
    const { lists, failure } = await shown.promise;
    if (lists.length > 0 || failure !== undefined) await watch.run(failure);
  });
  try {
    await Promise.all([listing, ...watching]);
  } finally {
    failed.abort();
  }
}

/** Throws a `Failure` if a word, such as `all`, names several types. */
function onlyType(answer: ClusterAnswer): ClusterAnswer {
  if (answer.lists.length <= 1) return answer;
  throw new Failure("usage", {
    object: "--watch",
    problem: `is for one type, and these are several: ${some(answer.lists.map(({ resource }) => kindName(resource)))}`,
    remedy: "name one",
  });
}
