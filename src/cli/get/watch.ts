import { defined } from "../../api/defined.ts";
import type { ObjectMeta } from "../../api/kubernetes.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import { selectionOf } from "../../kube/list.ts";
import type { TableColumn, TablePage, TableRow } from "../../kube/tables.ts";
import { ConnectionBackoff } from "../../runtime/backoff.ts";
import type { ReadCluster } from "../multicluster/clusters.ts";
import { pagesAfter, type ReadRequest, readPage, type StartedList, startReading } from "../multicluster/lists.ts";
import { Gaps } from "../shared/gaps.ts";
import { departedTable, type EventType } from "./columns.ts";
import type { ShowContext } from "./show.ts";

// A server that ends or cuts each watch at once is not asked without pause.
const RETRY = { initialMs: 1_000, maxMs: 30_000, healthyMs: 5_000 };
// A member may be lost though the connection to the host, by which it is watched, is fine. A failed probe ends the watch.
const PROBE_MS = 5_000;
const PROBE_TIMEOUT_MS = 5_000;

export interface WatchContext extends Omit<ShowContext, "onPage" | "onShown"> {
  /** Prints a line between the rows: a cluster is lost, or back. */
  readonly mark: (line: string) => void;
}

/** Watches the objects of one type in one cluster, and prints each change once, also across a loss of the cluster. */
export class ClusterWatch {
  readonly #cluster: ReadCluster;
  readonly #request: ReadRequest;
  readonly #context: WatchContext;
  /** Metadata of the objects that were printed, by `keyOf`. */
  readonly #known = new Map<string, ObjectMeta>();
  readonly #backoff: ConnectionBackoff;
  #list: StartedList | undefined;
  #columns: readonly TableColumn[] = [];
  /** Version from which to watch. Undefined: the objects are to be listed first. */
  #resourceVersion: string | undefined;
  #lost = false;

  constructor(cluster: ReadCluster, request: ReadRequest, context: WatchContext) {
    this.#cluster = cluster;
    this.#request = request;
    this.#context = context;
    this.#backoff = new ConnectionBackoff({ ...RETRY, clock: context.clock });
  }

  /** Notes a page of the first list, which was printed. */
  note(list: StartedList, page: TablePage): void {
    this.#list = list;
    if (page.columns.length > 0) this.#columns = page.columns;
    for (const row of page.rows) this.#know(row);
    this.#resourceVersion = page.continue === undefined ? page.resourceVersion : undefined;
  }

  /** Watches until the cluster refuses it. Rejects when the signal fires. `failure` is that of the first list. */
  async run(failure: KubeError | undefined): Promise<void> {
    const { clock, signal, gaps } = this.#context;
    if (failure !== undefined) {
      if (isFinal(failure)) return;
      this.#lost = true;
      await clock.sleep(this.#backoff.ended(), signal);
    }
    for (let failures = 0; ; ) {
      try {
        const list = await this.#started();
        if (list === undefined) return;
        this.#resourceVersion ??= await this.#relist(list);
        this.#find();
        failures = 0;
        await this.#watch(list, this.#resourceVersion);
      } catch (error) {
        signal.throwIfAborted();
        if (!isKubeError(error)) throw error;
        this.#resourceVersion = undefined;
        if (isFinal(error)) {
          gaps.add(this.#cluster.name, `is watched no longer: ${error.detail}`);
          return;
        }
        failures += 1;
        // A watch that was cut is no loss yet.
        const isCut = failures === 1 && !this.#lost;
        if (!isCut && error.code !== "Gone") this.#lose(error);
      }
      const delayMs = this.#backoff.ended();
      if (delayMs > 0) await clock.sleep(delayMs, signal);
    }
  }

  #lose({ detail }: KubeError): void {
    if (!this.#lost) this.#context.mark(`${this.#cluster.name}: lost; its rows may be out of date: ${detail}`);
    this.#lost = true;
  }

  #find(): void {
    if (this.#lost) this.#context.mark(`${this.#cluster.name}: back`);
    this.#lost = false;
    this.#backoff.working();
  }

  /** Finds the type in a cluster that did not answer at first. Undefined if it has no such type. */
  async #started(): Promise<StartedList | undefined> {
    if (this.#list !== undefined) return this.#list;
    const { signal, gaps } = this.#context;
    const quiet = new Gaps(() => undefined);
    const { lists, failure } = await startReading(this.#cluster, this.#request, { gaps: quiet, signal });
    if (failure !== undefined) throw failure;
    this.#list = lists[0];
    if (this.#list === undefined) gaps.add(this.#cluster.name, "has no such resource type");
    return this.#list;
  }

  /** Lists the objects, prints what changed since they were last seen, and returns the list's version. */
  async #relist({ resource, request }: StartedList): Promise<string> {
    const { signal } = this.#context;
    const first = await readPage(this.#cluster, resource, request, { signal, timeoutMs: request.timeoutMs });
    const present = new Set<string>();
    const before = new Map([...this.#known.values()].map((metadata) => [placeOf(metadata), metadata]));
    for await (const page of pagesAfter(first, this.#cluster, resource, { request, signal })) {
      for (const row of page.rows) {
        const { metadata = {} } = row.object;
        const known = this.#known.get(keyOf(metadata));
        present.add(keyOf(metadata));
        if (known !== undefined && known.resourceVersion === metadata.resourceVersion) continue;
        // A predecessor of the same name goes first: the last line of a name is what is there now.
        if (known === undefined) this.#printDeparted(before.get(placeOf(metadata)));
        this.#print(known === undefined ? "ADDED" : "MODIFIED", { ...page, rows: [row] });
      }
    }
    for (const [key, metadata] of this.#known) if (!present.has(key)) this.#printDeparted(metadata);
    return first.resourceVersion;
  }

  #printDeparted(metadata: ObjectMeta | undefined): void {
    if (metadata !== undefined) this.#print("DELETED", departedTable(this.#columns, metadata));
  }

  #print(event: EventType, table: TablePage): void {
    const list = this.#list;
    if (list === undefined) return;
    const { cluster, resource } = list;
    if (table.columns.length > 0) this.#columns = table.columns;
    for (const row of table.rows) {
      if (event === "DELETED") this.#known.delete(keyOf(row.object.metadata));
      else this.#know(row);
    }
    const shown = { cluster, resource, page: { ...table, columns: this.#columns }, event };
    this.#context.printer.begin?.([shown], false);
    this.#context.printer.print(shown);
  }

  #know({ object: { metadata = {} } }: TableRow): void {
    const { namespace, name, uid, resourceVersion } = metadata;
    this.#known.set(keyOf(metadata), defined({ namespace, name, uid, resourceVersion }));
  }

  /** Watches from a version until the server ends the watch. */
  async #watch({ resource, request }: StartedList, resourceVersion: string): Promise<void> {
    const ended = new AbortController();
    const probing = this.#probe(ended);
    try {
      const events = this.#cluster.client.watchTable(resource, {
        ...selectionOf(request),
        resourceVersion,
        includeObject: request.includeObject,
        dropManagedFields: true,
        signal: AbortSignal.any([this.#context.signal, ended.signal]),
      });
      for await (const event of events) {
        const { resourceVersion: seen } = event.type === "BOOKMARK" ? event : event.table;
        if (event.type !== "BOOKMARK") this.#print(event.type, event.table);
        if (seen !== "") this.#resourceVersion = seen;
      }
    } finally {
      ended.abort();
      await probing;
    }
  }

  /** Asks the cluster for its version now and then, and ends the watch when it does not answer. */
  async #probe(ended: AbortController): Promise<void> {
    const { clock } = this.#context;
    const signal = AbortSignal.any([this.#context.signal, ended.signal]);
    try {
      for (;;) {
        await clock.sleep(PROBE_MS, signal);
        await this.#cluster.client.raw({ method: "GET", path: "/version", timeoutMs: PROBE_TIMEOUT_MS, signal });
      }
    } catch (error) {
      // A refusal is an answer, too.
      if (!isKubeError(error) || !isFinal(error)) ended.abort();
    }
  }
}

/** Reports whether the cluster, or the way to it, would refuse the same request again. */
function isFinal({ code, status = 0 }: KubeError): boolean {
  return code === "BadCredentials" || (status >= 400 && status < 500 && code !== "TooManyRequests" && code !== "Gone");
}

function keyOf(metadata: ObjectMeta = {}): string {
  return metadata.uid ?? placeOf(metadata);
}

function placeOf({ namespace, name }: ObjectMeta): string {
  return `${namespace}/${name}`;
}
