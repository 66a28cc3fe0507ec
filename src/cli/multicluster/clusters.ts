import { z } from "zod";
import { ACCESS_GROUP, ACCESS_VERSION } from "../../api/access.ts";
import { parseLabelSelector, type Selector, selectorMatches } from "../../api/label-selector.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { Failure } from "../shared/failure.ts";
import { memberName } from "../shared/input.ts";
import { findClusters, listClusters, readable } from "../shared/reading.ts";
import type { ClusterChoice, ReadingClient, Session } from "../shared/session.ts";
import { didYouMean } from "../shared/suggestion.ts";

/** The name that stands for the host among the clusters to read. */
export const HOST = "host";
const ALL_MEMBERS = "*";

/** The clusters that a user wants to read: names, among them perhaps `*` for all members, or a selector of Clusters. */
export type WantedClusters = { readonly names: readonly string[] } | { readonly selector: Selector };

/** Parses `west,east`, `*,host` or `region in (eu)`. */
export const wantedClusters: z.ZodType<WantedClusters, string> = z.string().transform((text, context) => {
  const refuse = (message: string): never => {
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  };
  const names = text.split(",").map((name) => name.trim());
  if (names.every((name) => name === ALL_MEMBERS || memberName.safeParse(name).success)) return { names };
  const parsed = parseLabelSelector(text);
  if (parsed.ok && parsed.selector.length > 0) return { selector: parsed.selector };
  const problem = parsed.ok ? "it is empty" : parsed.message;
  return refuse(
    `${JSON.stringify(text)} names no clusters: ${problem}; write names, e.g. west,east or '*,${HOST}', or a selector of Clusters, e.g. region=eu`,
  );
});

/** A cluster to read. */
export interface ReadCluster {
  /** The member's name, or `host`. */
  readonly name: string;
  readonly client: ReadingClient;
}

/** Opens the wanted clusters, all members by default. Rejects with `Failure` if there are none, or no way to members. */
export async function openClusters(
  host: ClusterClient,
  wanted: WantedClusters | undefined,
  { choice, session }: { readonly choice: ClusterChoice; readonly session: Session },
): Promise<readonly ReadCluster[]> {
  const names = await namesOf(host, wanted ?? { names: [ALL_MEMBERS] }, session.signal);
  if (wanted !== undefined && "names" in wanted) await noteMisspelled(host, wanted.names, session);
  if (names.some((name) => name !== HOST)) await requireAccess(host, session.signal);
  return Promise.all(
    names.map(async (name) => ({ name, client: await session.openReading(choice, name === HOST ? undefined : name) })),
  );
}

/** Tells which member a name that has not joined may mean. Users who may not list Clusters are told nothing. */
async function noteMisspelled(
  host: ClusterClient,
  names: readonly string[],
  { signal, terminal }: Pick<Session, "signal" | "terminal">,
): Promise<void> {
  const wanted = names.filter((name) => name !== HOST && name !== ALL_MEMBERS);
  const found = wanted.length === 0 ? undefined : await readable(findClusters(host, signal));
  const joined = (found ?? []).map(({ metadata }) => metadata.name);
  for (const name of wanted) {
    const meant = joined.includes(name) ? undefined : didYouMean(name, joined);
    if (meant !== undefined) terminal.progress(`${name} has not joined: ${meant}`);
  }
}

/** Returns the names of the wanted clusters in order: the host first, if it is one of them. */
async function namesOf(host: ClusterClient, wanted: WantedClusters, signal: AbortSignal): Promise<readonly string[]> {
  if ("names" in wanted && !wanted.names.includes(ALL_MEMBERS)) return inOrder(wanted.names);
  const members = await membersOf(host, signal);
  if ("names" in wanted) {
    const names = inOrder([...wanted.names.filter((name) => name !== ALL_MEMBERS), ...members.map(({ name }) => name)]);
    if (names.length > 0) return names;
    throw new Failure("refused", {
      object: host.cluster,
      problem: "no member has joined",
      remedy: "see `legation join --help`",
    });
  }
  const chosen = members.filter(({ labels }) => selectorMatches(wanted.selector, labels)).map(({ name }) => name);
  if (chosen.length > 0) return inOrder(chosen);
  throw new Failure("refused", {
    object: "--clusters",
    problem: "no Cluster has such labels",
    remedy: "`kubectl get clusters.legation.dev --show-labels` shows those that they have",
  });
}

async function membersOf(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<readonly { readonly name: string; readonly labels: Readonly<Record<string, string>> }[]> {
  try {
    const found = await listClusters(host, signal);
    return found.map(({ metadata: { name, labels = {} } }) => ({ name, labels }));
  } catch (error) {
    if (!isKubeError(error, "Forbidden")) throw error;
    throw new Failure("failure", {
      object: host.cluster,
      problem: `you may not list Clusters: ${error.detail}`,
      remedy: "name the members (--clusters west,east), or have your account bound to the ClusterRole legation-viewer",
      cause: error,
    });
  }
}

function inOrder(names: readonly string[]): readonly string[] {
  const rank = (name: string): string => (name === HOST ? "" : name);
  return [...new Set(names)].sort((a, b) => (rank(a) < rank(b) ? -1 : 1));
}

/** Rejects with `Failure` if the host's API server does not lead to members. */
async function requireAccess(host: ClusterClient, signal: AbortSignal): Promise<void> {
  try {
    await host.raw({ method: "GET", path: `/apis/${ACCESS_GROUP}/${ACCESS_VERSION}`, signal });
  } catch (error) {
    if (!isKubeError(error) || signal.aborted) throw error;
    // A host may keep discovery from its users; each member's own answer says the rest.
    if (error.code === "Forbidden") return;
    const isAbsent = error.code === "NotFound";
    throw new Failure(isAbsent ? "refused" : "failure", {
      object: host.cluster,
      problem: isAbsent
        ? `it does not serve ${ACCESS_GROUP}, by which members are reached`
        : `${ACCESS_GROUP}, by which members are reached, does not answer: ${error.detail}`,
      remedy: isAbsent
        ? "an administrator installs it: `legation install --access`"
        : "`kubectl get apiservice v1.access.legation.dev -o yaml` says why",
      cause: error,
    });
  }
}
