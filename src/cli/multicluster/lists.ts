import type { KubeObject } from "../../api/kubernetes.ts";
import { noAnswer } from "../../api/wording.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import { PAGE_SIZE } from "../../kube/list.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import type { TablePage, TableRow } from "../../kube/tables.ts";
import { readServed, type ServedType } from "../shared/discovery.ts";
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
  readonly failure?: KubeError;
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
  const tell = (error: KubeError, what?: string): void => {
    signal.throwIfAborted();
    const detail = deadline.aborted ? noAnswer(request.timeoutMs) : error.detail;
    gaps.add(name, what === undefined ? detail : `${what}: ${detail}`);
  };
  let served: readonly ServedType[];
  try {
    const { types } = await readServed(client, options);
    served = types.filter(({ verbs }) => verbs.includes("list") || verbs.includes("get"));
  } catch (error) {
    if (!isKubeError(error)) throw error;
    tell(error);
    return { cluster, lists: [], missing: [], failure: error };
  }
  const wanted = request.queries.flatMap(({ word, names }) => {
    const types = typesNamed(served, word);
    if (types.length === 0) {
      gaps.add(name, `has no resource type ${JSON.stringify(word)}`, didYouMean(word, namesOfTypes(served)));
    }
    return types.map(({ resource }) => ({ resource, names }));
  });
  const missing: string[] = [];
  let failure: KubeError | undefined;
  const lists = wanted.map(async ({ resource, names }): Promise<StartedList | undefined> => {
    try {
      if (names.length > 0) return await readNamed(cluster, resource, names, { request, options, missing });
      return await startList(cluster, resource, request, { gaps, signal, options });
    } catch (error) {
      if (!isKubeError(error)) throw error;
      tell(error, kindName(resource));
      failure = error;
      return undefined;
    }
  });
  const started = (await Promise.all(lists)).filter((list) => list !== undefined);
  return { cluster, lists: started, missing, ...(failure === undefined ? {} : { failure }) };
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
  { namespace, labelSelector, fieldSelector, includeObject }: ReadRequest,
  options: PageOptions,
): Promise<TablePage> {
  return client.listTable(resource, {
    limit: PAGE_SIZE,
    includeObject,
    dropManagedFields: true,
    namespace,
    labelSelector,
    fieldSelector,
    ...options,
  });
}

/** Yields the page and those that follow it. One page is read in advance. */
export async function* pagesAfter(
  first: TablePage,
  cluster: ReadCluster,
  resource: Resource<KubeObject>,
  { request, signal }: { readonly request: ReadRequest; readonly signal: AbortSignal },
): AsyncGenerator<TablePage> {
  let page = first;
  for (;;) {
    const token = page.continue;
    if (token === undefined) {
      yield page;
      return;
    }
    const options = { signal, timeoutMs: request.timeoutMs, continue: token };
    const following = readPage(cluster, resource, request, options);
    // Awaited after the present page, which may take long to print.
    following.catch(() => undefined);
    yield page;
    page = await following;
  }
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
  const found = await Promise.all(
    names.map(async (name): Promise<TablePage | undefined> => {
      try {
        return await client.listTable(resource, {
          name,
          ...place,
          includeObject,
          dropManagedFields: true,
          ...options,
        });
      } catch (error) {
        if (!isKubeError(error, "NotFound")) throw error;
        missing.push(namedObject(resource, name));
        return undefined;
      }
    }),
  );
  const tables = found.filter((table) => table !== undefined);
  const rows: TableRow[] = tables.flatMap((table) => table.rows);
  const first: TablePage = { columns: tables[0]?.columns ?? [], rows, resourceVersion: "" };
  return {
    cluster,
    resource,
    request,
    first,
    pages: async function* () {
      yield first;
    },
  };
}
