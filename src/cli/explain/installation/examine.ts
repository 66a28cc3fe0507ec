import type { Cluster } from "../../../api/cluster.ts";
import { delegationModeOf } from "../../../api/delegation-mode.ts";
import { virtualNodeName } from "../../../api/keys.ts";
import type { KubeNode, Namespace, Stored } from "../../../api/kubernetes.ts";
import { recordedHost } from "../../../clusters/host-name.ts";
import { joinedTwice, joinedTwiceProblem } from "../../../clusters/joined-twice.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { accessObjects, loadMemberRole } from "../../join/grant-access.ts";
import { atMost } from "../../shared/at-most.ts";
import { Failure } from "../../shared/failure.ts";
import { hiddenLine, ofViewers } from "../../shared/hidden.ts";
import {
  asViewer,
  clusterId,
  listClusters,
  listNamespaces,
  listVirtualNodes,
  readable,
  readVersion,
} from "../../shared/reading.ts";
import type { Session } from "../../shared/session.ts";
import { didYouMean } from "../../shared/suggestion.ts";
import { processOf, readDeployments } from "../../version/installed.ts";
import { accessFindings, hubFindings } from "./access.ts";
import { attempt, checked, checkedAll, type Deadline, deadlineOf } from "./check.ts";
import { type ClockOffset, clockFinding, readClock } from "./clock.ts";
import { controllerFindings, kubeletFindings, staleNodeFindings } from "./controller.ts";
import { typeFindings } from "./delegated-types.ts";
import { type Finding, type FindingGroup, fail, isForbidden } from "./finding.ts";
import { homeApiFindings } from "./home-api.ts";
import { installedObjectFindings, partFinding, readInstallation, repairOf } from "./installed-objects.ts";
import { checkMember } from "./member.ts";
import { namespaceFindings } from "./namespaces.ts";
import { rightsOf } from "./rights.ts";
import { hostVersion, installedVersions } from "./versions.ts";
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

/** The host's objects that checks are about. */
interface Known {
  /** Undefined if the user may not list them. */
  readonly clusters: readonly Stored<Cluster>[] | undefined;
  readonly nodes: readonly Stored<KubeNode>[];
  readonly namespaces: readonly Stored<Namespace>[];
  /** The host has no other namespaces. */
  readonly areAllNamespaces: boolean;
}

/** The host's clock, compared with this machine's. */
interface HostTime {
  readonly clock: ClockOffset | undefined;
  /** The host's time, epoch ms. */
  readonly now: number;
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
  const deadline = (): Deadline => deadlineOf(session.signal, timeoutMs);
  const ofHost: Finding[] = [];
  const hostOnly = { groups: [{ name: "Host", findings: ofHost }] };
  onStep("the host");
  const first = deadline();
  const seen = await attempt("the host does not answer", first, ofHost, async () => {
    return { version: await readVersion(host, first), clock: await readClock(host, first) };
  });
  if (seen === undefined) {
    const remedy = "see that it runs, and that --kubeconfig and --context name it";
    return { groups: [{ name: "Host", findings: ofHost.map(({ what }) => fail(what, remedy)) }] };
  }
  const { clock } = seen;
  ofHost.push(hostVersion(seen.version));
  if (clock !== undefined) ofHost.push(clockFinding("its clock", "this machine's", clock));
  const second = deadline();
  const known = await attempt("Clusters, nodes and namespaces", second, ofHost, () =>
    readKnown(host, { members, namespace }, second.signal),
  );
  if (known === undefined) return hostOnly;
  const { clusters = [], nodes, namespaces, areAllNamespaces } = known;
  refuseUnknown(members ?? [], clusters);
  const now = Date.now() + (clock?.aheadMs ?? 0);
  onStep("the installation");
  const { findings: ofInstallation, url, repair } = await checkInstallation(host, version, deadline());
  const chosen = clusters.filter(({ metadata }) => members === undefined || members.includes(metadata.name));
  onStep("webhook, controller and members");
  const names = new Set(clusters.map(({ metadata }) => metadata.name));
  const shared = deadline();
  const at = { now, signal: shared.signal };
  const [webhook, controller, ofMembers, access, homeApi, types] = await Promise.all([
    checkWebhook(host, known, { now, url, repair }, deadline()),
    checked("controller", shared, () => controllerFindings(host, { ...at, inCluster: url === undefined })),
    checkMembers(host, { ...known, clusters, chosen }, { clock, now }, deadline, session),
    checkedAll(shared, {
      hub: () => hubFindings(host, clusters, at),
      "access for users": () => accessFindings(host, at),
    }),
    checked("home API", shared, () => homeApiFindings(host, chosen, shared.signal)),
    checked("delegated types", shared, () => typeFindings(host, at)),
  ]);
  const groups = [
    ...hostOnly.groups,
    { name: "Installation", findings: ofInstallation },
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

/** Reads what the checks are about. Rejects with `Failure` if Legation is not installed. */
async function readKnown(
  host: ClusterClient,
  { members, namespace }: Pick<ExamineOptions, "members" | "namespace">,
  signal: AbortSignal,
): Promise<Known> {
  const reading = listClusters(host, signal);
  // Named members cannot be judged without their Clusters.
  const clusters = await (members === undefined ? readable(reading) : asViewer(reading));
  const [nodes, own] = await Promise.all([
    clusters === undefined ? [] : asViewer(listVirtualNodes(host, signal)),
    readable(listNamespaces(host, [namespace], signal)),
  ]);
  return { clusters, nodes, namespaces: own?.found ?? [], areAllNamespaces: own?.isAll ?? false };
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

async function checkInstallation(
  host: ClusterClient,
  version: string,
  deadline: Deadline,
): Promise<{ readonly findings: readonly Finding[] } & Pick<WebhookContext, "url" | "repair">> {
  const { signal } = deadline;
  const problems: Finding[] = [];
  const read = await attempt("objects", deadline, problems, () => readInstallation(host, version, signal));
  const repair = repairOf(read?.before.helmRelease);
  const findings = await checkedAll(deadline, {
    Deployments: async () => {
      const found = (await readDeployments(host, signal)).map(processOf);
      const versions = new Map(found.map(({ component, version: of }) => [`legation-${component}`, of]));
      return [...installedVersions(version, versions, repair), ...found.map(partFinding)];
    },
    objects: async () => (read === undefined ? problems : installedObjectFindings(host, version, read, signal)),
  });
  return { findings, url: read?.before.webhookUrl, repair };
}

async function checkWebhook(
  host: ClusterClient,
  { namespaces, areAllNamespaces }: Known,
  known: Pick<WebhookContext, "now" | "url" | "repair">,
  deadline: Deadline,
): Promise<readonly Finding[]> {
  const namespace = namespaces.find(
    ({ metadata }) => delegationModeOf(metadata.labels) !== undefined && metadata.deletionTimestamp === undefined,
  );
  const context: WebhookContext = { ...known, namespace, signal: deadline.signal };
  return checkedAll(deadline, {
    "webhook configurations": () => configurationFindings(host, context),
    "reachability of the webhook": () => reachFindings(host, context),
    // Others, which the user may not see, may be opted in.
    "admission of a pod": async () => (namespace === undefined && !areAllNamespaces ? [] : podFindings(host, context)),
  });
}

async function checkMembers(
  host: ClusterClient,
  {
    clusters,
    nodes,
    chosen,
  }: Pick<Known, "nodes"> & Readonly<Record<"clusters" | "chosen", readonly Stored<Cluster>[]>>,
  { clock: hostClock, now }: HostTime,
  deadline: () => Deadline,
  session: Pick<Session, "connectText">,
): Promise<readonly FindingGroup[]> {
  if (chosen.length === 0) return [];
  const first = deadline();
  const problems: Finding[] = [];
  const needed = await attempt("rights that members are to give", first, problems, async () => {
    const { mcs } = await recordedHost(host, first.signal);
    const hostId = await clusterId(host, first.signal);
    const { role } = accessObjects(await loadMemberRole(mcs), { hostId, hostName: "", cluster: "" });
    return { mcs, rights: rightsOf(role.rules) };
  });
  const { mcs = false, rights } = needed ?? {};
  const nodeOf = new Map(nodes.map((node) => [node.metadata.name, node]));
  const results = await atMost(MEMBERS_AT_ONCE, chosen, async (cluster) => {
    const { name } = cluster.metadata;
    const node = nodeOf.get(virtualNodeName(name));
    const own = deadline();
    const [member, ofKubelet] = await Promise.all([
      checkMember({ host, cluster, node, rights, mcs, hostClock, now, deadline: own, session }),
      checked(`kubelet API of ${name}`, own, () => kubeletFindings(host, name, node, own)),
    ]);
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
