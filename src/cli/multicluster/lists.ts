import type { KubeObject } from "../../api/kubernetes.ts";
import { noAnswer } from "../../api/wording.ts";
import { ignoring, isKubeError, type KubeError } from "../../kube/errors.ts";
import { PAGE_SIZE, selectionOf } from "../../kube/list.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import type { TablePage } from "../../kube/tables.ts";
import { readServed } from "../shared/discovery.ts";
import type { Gaps } from "../shared/gaps.ts";
import { hiddenLine } from "../shared/hidden.ts";
import { didYouMean } from "../shared/suggestion.ts";
import { namesOfTypes, type TypeQuery, typesNamed } from "../shared/type-names.ts";
import type { ReadCluster } from "./clusters.ts";

export interface ReadRequest {
  readonly queries: readonly TypeQuery[];
  /** Undefined: all namespaces. */
  readonly namespace: string | undefined;
  /** With all namespaces: the one that is read where the account may not list them all. */
  readonly ownNamespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly includeObject: "Metadata" | "Object";
  /** Deadline of a cluster's first answer, and of each page after it. */
  readonly timeoutMs: number;
}

/** The objects of one type in one cluster, of which the first page is there. */
export interface StartedList {
  readonly cluster: string;
  readonly resource: Resource<KubeObject>;
  /** The request as the cluster permits it. */
  readonly request: ReadRequest;
  readonly first: TablePage;
  /** Yields all pages. Reads the next one while the present one is used. Rejects with KubeError. */
  readonly pages: () => AsyncGenerator<TablePage>;
}

export interface ClusterAnswer {
  readonly cluster: ReadCluster;
  readonly lists: readonly StartedList[];
  /** Objects that were asked for by name and are not there: `pods "web-0"`. */
  readonly missing: readonly string[];
  readonly failure?: KubeError | undefined;
}

/** Formats an object as in `ClusterAnswer.missing`. */
export function namedObject(resource: Resource<KubeObject>, name: string): string {
  return `${kindName(resource)} ${JSON.stringify(name)}`;
}

/** Finds the types in a cluster, and reads the first page of each. Tells of what fails. Rejects only when the signal fires. */
export async function startReading(
  cluster: ReadCluster,
  request: ReadRequest,
  { gaps, signal }: { readonly gaps: Gaps; readonly signal: AbortSignal },
): Promise<ClusterAnswer> {
  const { name, client } = cluster;
  const deadline = AbortSignal.timeout(request.timeoutMs);
  const options = { signal: AbortSignal.any([signal, deadline]), timeoutMs: request.timeoutMs };
  let failure: KubeError | undefined;
  const orTell = async <T>(reading: Promise<T>, what = ""): Promise<T | undefined> => {
    try {
      return await reading;
    } catch (error) {
      if (!isKubeError(error)) throw error;
      signal.throwIfAborted();
      gaps.add(name, what + (deadline.aborted ? noAnswer(request.timeoutMs) : error.detail));
      failure = error;
      return undefined;
    }
  };
  const missing: string[] = [];
  const served = await orTell(readServed(client, options));
  const types = served?.types.filter(({ verbs }) => verbs.includes("list") || verbs.includes("get")) ?? [];
  const reading = (served === undefined ? [] : request.queries).flatMap(({ word, names }) => {
    const found = typesNamed(types, word);
    if (found.length === 0) {
      gaps.add(name, `has no resource type ${JSON.stringify(word)}`, didYouMean(word, namesOfTypes(types)));
    }
    return found.map(({ resource }) => {
      const list =
        names.length > 0
          ? readNamed(cluster, resource, names, { request, options, missing })
          : startList(cluster, resource, request, { gaps, signal, options });
      return orTell(list, `${kindName(resource)}: `);
    });
  });
  const lists = (await Promise.all(reading)).filter((list) => list !== undefined);
  return { cluster, lists, missing, failure };
}

/** Reads the first page, of the account's own namespace where it may not list all. Rejects with KubeError. */
async function startList(
  cluster: ReadCluster,
  resource: Resource<KubeObject>,
  request: ReadRequest,
  context: { readonly gaps: Gaps; readonly signal: AbortSignal; readonly options: PageOptions },
): Promise<StartedList> {
  const { signal, options, gaps } = context;
  try {
    const first = await readPage(cluster, resource, request, options);
    const pages = (): AsyncGenerator<TablePage> => pagesAfter(first, cluster, resource, { request, signal });
    return { cluster: cluster.name, resource, request, first, pages };
  } catch (error) {
    const { namespace, ownNamespace } = request;
    const hasOwn = namespace === undefined && ownNamespace !== undefined && resource.namespaced;
    if (!hasOwn || !isKubeError(error, "Forbidden")) throw error;
    const own = await startList(cluster, resource, { ...request, namespace: ownNamespace }, context);
    const right = "the right to list them in all namespaces of a member";
    gaps.note(`${hiddenLine([{ what: `${kindName(resource)} of namespaces beside ${ownNamespace}`, right }])}`);
    return own;
  }
}

interface PageOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly continue?: string;
}

export function readPage(
  { client }: ReadCluster,
  resource: Resource<KubeObject>,
  request: ReadRequest,
  options: PageOptions,
): Promise<TablePage> {
  const { includeObject } = request;
  const more = { limit: PAGE_SIZE, includeObject, dropManagedFields: true, ...options };
  return client.listTable(resource, { ...selectionOf(request), ...more });
}

/** Yields the page and those that follow it. One page is read in advance. */
export async function* pagesAfter(
  first: TablePage,
  cluster: ReadCluster,
  resource: Resource<KubeObject>,
  { request, signal }: { readonly request: ReadRequest; readonly signal: AbortSignal },
): AsyncGenerator<TablePage> {
  let page = first;
  while (page.continue !== undefined) {
    const options = { signal, timeoutMs: request.timeoutMs, continue: page.continue };
    const following = readPage(cluster, resource, request, options);
    // Awaited after the present page, which may take long to print.
    following.catch(() => undefined);
    yield page;
    page = await following;
  }
  yield page;
}

async function readNamed(
  { name: cluster, client }: ReadCluster,
  resource: Resource<KubeObject>,
  names: readonly string[],
  context: { readonly request: ReadRequest; readonly options: PageOptions; readonly missing: string[] },
): Promise<StartedList> {
  const { request, options, missing } = context;
  const { namespace, includeObject } = request;
  const place = namespace === undefined || !resource.namespaced ? {} : { namespace };
  const reading = names.map(async (name) => {
    const asked = { name, ...place, includeObject, dropManagedFields: true, ...options };
    const found = await ignoring(client.listTable(resource, asked), "NotFound");
    if (found === undefined) missing.push(namedObject(resource, name));
    return found;
  });
  const tables = (await Promise.all(reading)).filter((table) => table !== undefined);
  const rows = tables.flatMap((table) => table.rows);
  const first: TablePage = { columns: tables[0]?.columns ?? [], rows, resourceVersion: "" };
  const pages = async function* (): AsyncGenerator<TablePage> {
    yield first;
  };
  return { cluster, resource, request, first, pages };
}
