import type { Cluster } from "../../../api/cluster.ts";
import { delegationModeOf } from "../../../api/delegation-mode.ts";
import { virtualNodeName } from "../../../api/keys.ts";
import type { KubeNode, Namespace, Stored } from "../../../api/kubernetes.ts";
import { clusters as clusterResource } from "../../../api/resources.ts";
import { noAnswer } from "../../../api/wording.ts";
import { recordedHost } from "../../../clusters/host-name.ts";
import { joinedTwice, joinedTwiceProblem } from "../../../clusters/joined-twice.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { accessObjects, loadMemberRole } from "../../join/grant-access.ts";
import { atMost } from "../../shared/at-most.ts";
import { Failure } from "../../shared/failure.ts";
import { hiddenLine, ofViewers } from "../../shared/hidden.ts";
import {
  asViewer,
  clusterId,
  findClusters,
  listNamespaces,
  listVirtualNodes,
  readable,
  readVersion,
} from "../../shared/reading.ts";
import type { Session } from "../../shared/session.ts";
import { didYouMean } from "../../shared/suggestion.ts";
import { accessFindings, hubFindings } from "./access.ts";
import { checked, checkedAll, type Deadline, deadlineOf, problemOf } from "./check.ts";
import { type ClockOffset, clockFinding, readClock } from "./clock.ts";
import { controllerFindings } from "./controller.ts";
import { typeFindings } from "./delegated-types.ts";
import { type Finding, type FindingGroup, fail, isForbidden } from "./finding.ts";
import { homeApiFindings } from "./home-api.ts";
import { installedObjectFindings, partFinding, readInstallation, readParts, repairOf } from "./installed-objects.ts";
import { checkMember } from "./member.ts";
import { namespaceFindings } from "./namespaces.ts";
import { type Right, rightsOf } from "./rights.ts";
import { hostVersion, installedVersions } from "./versions.ts";
import { kubeletFindings, staleNodeFindings } from "./virtual-nodes.ts";
import { configurationFindings, podFindings, reachFindings, type WebhookContext } from "./webhook.ts";

export interface ExamineOptions {
  /** Names of the members to check. Undefined: all. */
  readonly members: readonly string[] | undefined;
  readonly timeoutMs: number;
  readonly version: string;
  /** The namespace to check for a user who may not list all. */
  readonly namespace: string;
}

/** The findings about an installation. */
export interface Examination {
  readonly groups: readonly FindingGroup[];
  /** Says what a user may not see who may not see the members. Undefined: the user may. */
  readonly hidden?: string | undefined;
}

// Each member is asked by connections of its own.
const MEMBERS_AT_ONCE = 16;

interface HostFacts {
  readonly host: ClusterClient;
  readonly clusters: readonly Stored<Cluster>[];
  readonly nodes: readonly Stored<KubeNode>[];
  readonly namespaces: readonly Stored<Namespace>[];
  readonly clock: ClockOffset | undefined;
  /** The host's time, epoch ms. */
  readonly now: number;
}

interface Known extends Pick<HostFacts, "nodes" | "namespaces"> {
  /** Undefined if the user may not list them. */
  readonly clusters: HostFacts["clusters"] | undefined;
  /** There are no other namespaces. */
  readonly areAllNamespaces: boolean;
}

/**
 * Checks an installation from end to end, as far as the user may. Changes nothing. `onStep` receives what is checked next. Rejects for
 * an unknown member.
 */
export async function examine(
  host: ClusterClient,
  { members, timeoutMs, version, namespace }: ExamineOptions,
  session: Pick<Session, "connectText" | "signal">,
  onStep: (step: string) => void,
): Promise<Examination> {
  const { signal } = session;
  const deadline = (): Deadline => deadlineOf(signal, timeoutMs);
  onStep("the host");
  const reached = await checkHost(host, deadline());
  if (reached.clock === "unreached") return { groups: [{ name: "Host", findings: reached.findings }] };
  const { clock } = reached;
  const now = Date.now() + (clock?.aheadMs ?? 0);
  const { known, findings: problems } = await readKnown(host, { members, namespace }, deadline());
  if (known === undefined) return { groups: [{ name: "Host", findings: [...reached.findings, ...problems] }] };
  const { clusters = [], nodes, namespaces, areAllNamespaces } = known;
  refuseUnknown(members ?? [], clusters);
  const facts: HostFacts = { host, clusters, nodes, namespaces, clock, now };
  onStep("the installation");
  const installation = await checkInstallation(facts, version, deadline());
  const chosen = clusters.filter(({ metadata }) => members === undefined || members.includes(metadata.name));
  onStep("webhook, controller and members");
  const names = new Set(clusters.map(({ metadata }) => metadata.name));
  const shared = deadline();
  const [webhook, controller, ofMembers, access, homeApi, types] = await Promise.all([
    checkWebhook(facts, { ...installation, areAllNamespaces }, deadline()),
    checked("controller", shared, () =>
      controllerFindings(host, { now, inCluster: installation.url === undefined, signal: shared.signal }),
    ),
    checkMembers(facts, chosen, deadline, session),
    checkedAll(shared, {
      hub: () => hubFindings(host, clusters, { now, signal: shared.signal }),
      "access for users": () => accessFindings(host, { now, signal: shared.signal }),
    }),
    checked("home API", shared, () => homeApiFindings(host, chosen, shared.signal)),
    checked("delegated types", shared, () => typeFindings(host, { now, signal: shared.signal })),
  ]);
  const groups = [
    { name: "Host", findings: reached.findings },
    { name: "Installation", findings: installation.findings },
    { name: "Admission webhook", findings: webhook },
    { name: "Controller", findings: [...controller, ...staleNodeFindings(nodes, names)] },
    ...ofMembers,
    { name: "API server of pods in members", findings: homeApi },
    { name: "Agents and access", findings: access },
    ...(types.length === 0 ? [] : [{ name: "Delegated types", findings: types }]),
    { name: "Namespaces", findings: namespaceFindings(namespaces, known.clusters && names, areAllNamespaces) },
  ];
  return known.clusters === undefined ? seenOf(groups) : { groups };
}

/** Says in one line what the user may not see, in place of a finding for each. */
function seenOf(groups: readonly FindingGroup[]): Examination {
  const denied = groups.filter(({ findings }) => findings.some(isForbidden)).map(({ name }) => name);
  const parts = { what: `parts of ${denied.join(", ")}`, right: "an administrator's account" };
  return {
    groups: groups.map(({ name, findings }) => ({ name, findings: findings.filter((one) => !isForbidden(one)) })),
    hidden: hiddenLine([ofViewers("the members"), ...(denied.length === 0 ? [] : [parts])]),
  };
}

/** Reads what the checks are about. */
async function readKnown(
  host: ClusterClient,
  { members, namespace }: Pick<ExamineOptions, "members" | "namespace">,
  deadline: Deadline,
): Promise<{ readonly known: Known | undefined; readonly findings: readonly Finding[] }> {
  const { signal } = deadline;
  let known: Known | undefined;
  const findings = await checked("Clusters, nodes and namespaces", deadline, async () => {
    const reading = findClusters(host, signal).then((clusters) => ({ clusters }));
    // Named members cannot be judged without their Clusters.
    const found = await (members === undefined ? readable(reading) : asViewer(reading));
    if (found !== undefined && found.clusters === undefined) {
      const what = `Legation is not installed: the host does not serve ${clusterResource.plural}.${clusterResource.group}`;
      return [fail(what, "legation install")];
    }
    const [nodes, own] = await Promise.all([
      found === undefined ? [] : asViewer(listVirtualNodes(host, signal)),
      readable(listNamespaces(host, [namespace], signal)),
    ]);
    known = {
      clusters: found?.clusters,
      nodes,
      namespaces: own?.found ?? [],
      areAllNamespaces: own?.isAll ?? false,
    };
    return [];
  });
  return { known, findings };
}

/** Refuses names of `--members` that no Cluster has. */
function refuseUnknown(members: readonly string[], clusters: readonly Stored<Cluster>[]): void {
  const known = clusters.map(({ metadata }) => metadata.name);
  const unknown = members.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new Failure("usage", {
    object: "--members",
    problem: `${unknown} has not joined`,
    remedy: didYouMean(unknown, known) ?? `members are ${known.join(", ") || "none"}`,
  });
}

async function checkHost(
  host: ClusterClient,
  { signal, timeoutMs, command }: Deadline,
): Promise<{ readonly findings: readonly Finding[]; readonly clock: ClockOffset | undefined | "unreached" }> {
  try {
    const version = await readVersion(host, { signal, timeoutMs });
    const clock = await readClock(host, { signal, timeoutMs });
    const ofClock = clock === undefined ? [] : [clockFinding("its clock", "this machine's", clock)];
    return { findings: [hostVersion(version), ...ofClock], clock };
  } catch (error) {
    command.throwIfAborted();
    if (!isKubeError(error)) throw error;
    const remedy = "see that it runs, and that --kubeconfig and --context name it";
    const problem = signal.aborted ? noAnswer(timeoutMs) : problemOf(error);
    return { findings: [fail(`the host does not answer: ${problem}`, remedy)], clock: "unreached" };
  }
}

async function checkInstallation(
  { host }: HostFacts,
  version: string,
  deadline: Deadline,
): Promise<{ readonly findings: readonly Finding[]; readonly url: string | undefined; readonly repair: string }> {
  const { signal } = deadline;
  let url: string | undefined;
  const reading = readInstallation(host, version, signal);
  const repair = reading.then(
    ({ before }) => repairOf(before.helmRelease),
    () => repairOf(undefined),
  );
  const findings = await checkedAll(deadline, {
    Deployments: async () => {
      const found = await readParts(host, signal);
      const versions = new Map(found.map((part) => [part.name, part.version]));
      return [...installedVersions(version, versions, await repair), ...found.map(partFinding)];
    },
    objects: async () => {
      const installation = await reading;
      url = installation.before.webhookUrl;
      return installedObjectFindings(host, version, installation, signal);
    },
  });
  return { findings, url, repair: await repair };
}

async function checkWebhook(
  { host, namespaces, now }: HostFacts,
  { url, repair, areAllNamespaces }: Pick<WebhookContext, "url" | "repair"> & Pick<Known, "areAllNamespaces">,
  deadline: Deadline,
): Promise<readonly Finding[]> {
  const namespace = namespaces.find(
    ({ metadata }) => delegationModeOf(metadata.labels) !== undefined && metadata.deletionTimestamp === undefined,
  );
  const context: WebhookContext = { now, url, repair, namespace, signal: deadline.signal };
  return checkedAll(deadline, {
    "webhook configurations": () => configurationFindings(host, context),
    "reachability of the webhook": () => reachFindings(host, context),
    // Others, which the user may not see, may be opted in.
    "admission of a pod": async () => (namespace === undefined && !areAllNamespaces ? [] : podFindings(host, context)),
  });
}

async function checkMembers(
  { host, clusters, nodes, clock, now }: HostFacts,
  chosen: readonly Stored<Cluster>[],
  deadline: () => Deadline,
  session: Pick<Session, "connectText" | "signal">,
): Promise<readonly FindingGroup[]> {
  if (chosen.length === 0) return [];
  const first = deadline();
  let rights: readonly Right[] | undefined;
  let mcs = false;
  const problems = await checked("rights that members are to give", first, async () => {
    ({ mcs } = await recordedHost(host, first.signal));
    rights = await neededRights(host, mcs, first.signal);
    return [];
  });
  const nodeOf = new Map(nodes.map((node) => [node.metadata.name, node]));
  const results = await atMost(MEMBERS_AT_ONCE, chosen, async (cluster) => {
    const { name } = cluster.metadata;
    const node = nodeOf.get(virtualNodeName(name));
    const own = deadline();
    const kubelet = checked(`kubelet API of ${name}`, own, () => kubeletFindings(host, name, node, own));
    const context = { host, cluster, node, rights, mcs, hostClock: clock, now, deadline: own, session };
    const [member, ofKubelet] = await Promise.all([checkMember(context), kubelet]);
    return { name, member, ofKubelet };
  });
  const found = new Map(results.map(({ name, member }) => [name, member.found]));
  const twice = joinedTwice(clusters.map((cluster) => ({ cluster, found: found.get(cluster.metadata.name) })));
  const groups = results.map(({ name, member, ofKubelet }) => {
    const keeper = twice.get(name);
    const again = `${name}: ${joinedTwiceProblem(name, keeper ?? "")}`;
    const ofTwice = keeper === undefined ? [] : [fail(again, `legation unjoin ${name}`)];
    return { name: `Member ${name}`, findings: [...member.findings, ...ofTwice, ...ofKubelet] };
  });
  return problems.length === 0 ? groups : [{ name: "Members", findings: problems }, ...groups];
}

/** Returns the rights that `legation join` gives the host in a member. */
async function neededRights(host: ClusterClient, mcs: boolean, signal: AbortSignal): Promise<readonly Right[]> {
  const role = await loadMemberRole(mcs);
  const hostId = await clusterId(host, signal);
  return rightsOf(accessObjects(role, { hostId, hostName: "", cluster: "" }).role.rules);
}
