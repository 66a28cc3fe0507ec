import { z } from "zod";
import { ACCESS_GROUP, ACCESS_VERSION } from "../../api/access.ts";
import { parseLabelSelector, type Selector, selectorMatches } from "../../api/label-selector.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, type KubeError } from "../../kube/errors.ts";
import { listAll } from "../../kube/list.ts";
import { pods } from "../../kube/resources.ts";
import { memberOf } from "../../pods/proxy.ts";
import { WHOLE_SELECTOR } from "../../whole/jobs/kind.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { Failure } from "../shared/failure.ts";
import { hiddenLine, ofViewers } from "../shared/hidden.ts";
import { memberName } from "../shared/input.ts";
import { listClusters, OF_PROXIES, readable } from "../shared/reading.ts";
import type { ClusterChoice, ReadingClient, Session } from "../shared/session.ts";

/** The name that stands for the host among the clusters to read. */
export const HOST = "host";
const ALL_MEMBERS = "*";

/** The clusters that a user wants to read: names, among them perhaps `*` for all members, or a selector of Clusters. */
export type WantedClusters = { readonly names: readonly string[] } | { readonly selector: Selector };

/** Parses `west,east`, `*,host` or `region in (eu)`. */
export const wantedClusters: z.ZodType<WantedClusters, string> = z.string().transform((text, context) => {
  const names = text.split(",").map((name) => name.trim());
  if (names.every((name) => name === ALL_MEMBERS || memberName.safeParse(name).success)) return { names };
  const parsed = parseLabelSelector(text);
  if (parsed.ok && parsed.selector.length > 0) return { selector: parsed.selector };
  const problem = parsed.ok ? "it is empty" : parsed.message;
  context.addIssue(
    `${JSON.stringify(text)} names no clusters: ${problem}; write names, e.g. west,east or '*,${HOST}', or a selector of Clusters, e.g. region=eu`,
  );
  return z.NEVER;
});

export interface ReadCluster {
  readonly name: string;
  readonly client: ReadingClient;
}

interface OpenOptions {
  readonly choice: ClusterChoice;
  readonly session: Session;
  /** The namespace by which an account without rights on Clusters knows members. */
  readonly namespace: string;
}

/** Opens the wanted clusters, all members by default. Rejects with `Failure` if there are none, or no way to members. */
export async function openClusters(
  host: ClusterClient,
  wanted: WantedClusters = { names: [ALL_MEMBERS] },
  { choice, session, namespace }: OpenOptions,
): Promise<readonly ReadCluster[]> {
  const names = await namesOf(host, wanted, { session, namespace });
  if (names.some((name) => name !== HOST)) await requireAccess(host, session.signal);
  return Promise.all(
    names.map(async (name) => ({ name, client: await session.openReading(choice, name === HOST ? undefined : name) })),
  );
}

/** Returns the names of the wanted clusters in order. Without rights on Clusters, `*` is members with something of the namespace. */
async function namesOf(
  host: ClusterClient,
  wanted: WantedClusters,
  { namespace, session: { signal, terminal } }: Omit<OpenOptions, "choice">,
): Promise<readonly string[]> {
  const { names = [], selector }: { readonly names?: readonly string[]; readonly selector?: Selector } = wanted;
  if (selector === undefined && !names.includes(ALL_MEMBERS)) return inOrder(names);
  let members: readonly string[];
  try {
    const joined = await listClusters(host, signal);
    const chosen = joined.filter(({ metadata: { labels = {} } }) => selectorMatches(selector ?? [], labels));
    members = chosen.map(({ metadata }) => metadata.name);
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    members = await membersWith(host, namespace, signal);
    if (selector !== undefined || members.length === 0) throw mayNotList(error, inOrder(members), namespace);
    terminal.progress(`${hiddenLine([ofViewers(`members without pods or whole Jobs of namespace ${namespace}`)])}`);
  }
  const all = inOrder([...names.filter((name) => name !== ALL_MEMBERS), ...members]);
  if (all.length > 0) return all;
  if (selector === undefined) {
    const remedy = "see `legation join --help`";
    throw new Failure("refused", { object: host.cluster, problem: "no member has joined", remedy });
  }
  const remedy = "`kubectl get clusters.legation.dev --show-labels` shows those that they have";
  throw new Failure("refused", { object: "--clusters", problem: "no Cluster has such labels", remedy });
}

function mayNotList(error: KubeError, known: readonly string[], namespace: string): Failure {
  const names =
    known.length === 0 ? "west,east" : `${known.join(",")} for those with something of namespace ${namespace}`;
  return new Failure("failure", {
    object: HOST,
    problem: `you may not list Clusters: ${error.detail}`,
    remedy: `name the members (--clusters ${names}), or have your account bound to the ClusterRole legation-viewer`,
    cause: error,
  });
}

/** Returns the members that have pods, or objects of built-in types, of a namespace, as far as the account may list these. */
async function membersWith(host: ClusterClient, namespace: string, signal: AbortSignal): Promise<readonly string[]> {
  const options = { namespace, dropManagedFields: true, signal };
  const [proxies = [], ...whole] = await Promise.all([
    readable(listAll(host, pods, { ...options, labelSelector: OF_PROXIES })),
    ...WHOLE_TYPES.map(async ({ resource, membersOf }) => {
      const found = await readable(listAll(host, resource, { ...options, labelSelector: WHOLE_SELECTOR }));
      return (found ?? []).flatMap(membersOf);
    }),
  ]);
  return [...new Set([...proxies.flatMap((proxy) => memberOf(proxy) ?? []), ...whole.flat()])];
}

function inOrder(names: readonly string[]): readonly string[] {
  const rank = (name: string): string => (name === HOST ? "" : name);
  return [...new Set(names)].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** Rejects with `Failure` if the host's API server does not lead to members. */
async function requireAccess(host: ClusterClient, signal: AbortSignal): Promise<void> {
  try {
    // A host may keep discovery from its users; each member's own answer says the rest.
    await readable(host.raw({ method: "GET", path: `/apis/${ACCESS_GROUP}/${ACCESS_VERSION}`, signal }));
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    const isAbsent = error.code === "NotFound";
    throw new Failure(isAbsent ? "refused" : "failure", {
      object: host.cluster,
      problem: `${isAbsent ? "it does not serve" : "nothing answers for"} ${ACCESS_GROUP}, by which members are reached`,
      remedy: isAbsent
        ? "an administrator installs it: `legation install --access`"
        : `\`kubectl get apiservice ${ACCESS_VERSION}.${ACCESS_GROUP} -o yaml\` says why`,
      cause: error,
    });
  }
}
