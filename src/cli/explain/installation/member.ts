import { ACCESS_KUBECONFIG_KEY, ACCESS_NAMESPACE, accessSecretName } from "../../../api/access.ts";
import { CLUSTER_DEFAULTS, type Cluster } from "../../../api/cluster.ts";
import { joinCommandOf } from "../../../api/join-command.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../../api/keys.ts";
import { type KubeNode, type Stored, secretText } from "../../../api/kubernetes.ts";
import { noAnswer } from "../../../api/wording.ts";
import { recordedUid } from "../../../clusters/identity.ts";
import type { FoundIdentity } from "../../../clusters/joined-twice.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { isKubeError } from "../../../kube/errors.ts";
import { secrets } from "../../../kube/resources.ts";
import { tokenClaims } from "../../../kube/service-account-token.ts";
import { clusterId, readable, readVersion } from "../../shared/reading.ts";
import type { Connection, Session } from "../../shared/session.ts";
import { notReady, readinessOf, removing } from "../members.ts";
import { tokenFinding } from "./certificates.ts";
import { checked, checkedAll, type Deadline, problemOf } from "./check.ts";
import { between, type ClockOffset, clockFinding, readClock } from "./clock.ts";
import { type Finding, fail, ok, skip, warn } from "./finding.ts";
import { importsFindings, networkFindings } from "./joined-network.ts";
import { findLacking, type Right, rightsText } from "./rights.ts";
import { memberVersion } from "./versions.ts";

export interface MemberContext {
  readonly host: ClusterClient;
  readonly cluster: Stored<Cluster>;
  readonly node: Stored<KubeNode> | undefined;
  /** Rights that the host's account needs in the member. Undefined if unknown. */
  readonly rights: readonly Right[] | undefined;
  /** Legation implements the Multi-Cluster Services API in joined networks. */
  readonly mcs: boolean;
  /** The host's API server's clock. Undefined if unknown. */
  readonly hostClock: ClockOffset | undefined;
  /** That clock's time, epoch ms. */
  readonly now: number;
  readonly deadline: Deadline;
  readonly session: Pick<Session, "connectText">;
}

/** The findings about a member, and the cluster that its credentials lead to. */
export interface CheckedMember {
  readonly findings: readonly Finding[];
  readonly found: FoundIdentity | undefined;
}

/** Checks one member from the host and from this machine. Never waits longer than its deadline. */
export async function checkMember(context: MemberContext): Promise<CheckedMember> {
  const { cluster, node, deadline } = context;
  const { name } = cluster.metadata;
  let found: FoundIdentity | undefined;
  const parts = await Promise.all([
    checked(name, deadline, async () => accessFindings(context)),
    checked(name, deadline, () =>
      networkFindings(context.host, cluster, { now: context.now, signal: deadline.signal }),
    ),
    checked(name, deadline, async () => {
      const opened = await open(context);
      const { connection, findings } = opened;
      if (connection === undefined) return findings;
      const there = await checkThere(connection, context);
      found = there.found;
      return [...findings, ...there.findings];
    }),
  ]);
  return { findings: [readyFinding(cluster, node), ...parts.flat()], found };
}

function rejoin(name: string): string {
  return `legation join ${name} --member-kubeconfig FILE`;
}

/** Judges a member's readiness as the controller reports it. */
export function readyFinding(cluster: Stored<Cluster>, node: Stored<KubeNode> | undefined): Finding {
  const { name } = cluster.metadata;
  const removal = removing(cluster);
  if (removal !== undefined) return { ...removal, state: "WARN", remedy: `legation unjoin ${name}` };
  const found = notReady(cluster, node);
  const remedy = "see the findings below, and docs/troubleshooting.md#a-member-is-not-ready";
  if (found !== undefined) return { ...found, state: "FAIL", remedy };
  const { reason } = readinessOf(cluster, node);
  if (reason !== undefined) {
    const isCordoned = node?.spec?.unschedulable === true;
    const step = isCordoned ? `kubectl uncordon legation-${name}` : "see docs/troubleshooting.md#a-member-is-slow";
    return warn(`${name} is ready, and ${reason}`, step);
  }
  const { agent, connection } = cluster.status ?? {};
  const reached =
    connection === "Agent" ? `, through its agent ${agent?.version ?? ""} since ${agent?.connectedSince}` : "";
  return ok(`${name} is ready${reached}`);
}

interface Opened {
  readonly connection?: Connection;
  readonly findings: readonly Finding[];
}

async function open({ host, cluster, now, deadline, session }: MemberContext): Promise<Opened> {
  const { name } = cluster.metadata;
  const { credentialsSecret, agent } = cluster.spec;
  const { name: secretName, key = CLUSTER_DEFAULTS.credentialsKey } = credentialsSecret;
  const subject = `Secret ${SYSTEM_NAMESPACE}/${secretName}`;
  const again = joinCommandOf(cluster);
  const ref = { namespace: SYSTEM_NAMESPACE, name: secretName };
  const secret = await host.find(secrets, ref, { signal: deadline.signal });
  if (secret === undefined) return { findings: [fail(`${name}: ${subject} with its credentials is missing`, again)] };
  const kubeconfig = secretText(secret, key);
  // The agent brings them when it connects.
  if (kubeconfig === undefined && agent !== undefined) {
    return { findings: [fail(`${name}: its agent has not brought credentials yet`, again)] };
  }
  if (kubeconfig === undefined) return { findings: [fail(`${name}: ${subject} has no key ${key}`, again)] };
  const claims = tokenClaims(kubeconfig);
  const token = claims === undefined ? [] : [tokenFinding(`${name}: its token`, claims, { now, remedy: again })];
  if (agent !== undefined) {
    const why = "it is reached through its agent: its version, rights and clock cannot be read from here";
    return { findings: [...token, skip(`${name}: ${why}`)] };
  }
  try {
    return { connection: await session.connectText(kubeconfig, name), findings: token };
  } catch (error) {
    if (!isKubeError(error, "BadCredentials")) throw error;
    return { findings: [...token, fail(`${name}: ${subject} cannot be used: ${problemOf(error)}`, again)] };
  }
}

/** Checks the member itself: that it answers, who it is, its version, its clock, and the rights in it. */
async function checkThere({ client, server }: Connection, context: MemberContext): Promise<CheckedMember> {
  const { cluster, rights, mcs, hostClock, deadline } = context;
  const { signal, timeoutMs } = deadline;
  const { name } = cluster.metadata;
  const limits = { signal, timeoutMs };
  try {
    await client.raw({ method: "GET", path: "/readyz?exclude=shutdown", ...limits });
  } catch (error) {
    deadline.command.throwIfAborted();
    if (!isKubeError(error)) throw error;
    // Names of a private network or of Docker, say, which the controller resolves.
    if (UNKNOWN_NAME.test(error.detail) && readinessOf(cluster, context.node).ready === "True") {
      const what = `${name} is at ${server}, a name that this machine does not know: version, clock and rights are not checked`;
      return {
        findings: [skip(what, "run it where the controller runs, or where the name is known")],
        found: undefined,
      };
    }
    const problem = signal.aborted ? noAnswer(timeoutMs) : problemOf(error);
    return { findings: [unreachable(name, server, error.code, problem)], found: undefined };
  }
  let found: FoundIdentity = { uid: undefined, server };
  const findings = await checkedAll(deadline, {
    [`${name}: version`]: async () => [memberVersion(name, await readVersion(client, limits))],
    [`${name}: identity`]: async () => {
      const uid = await readable(clusterId(client, signal));
      found = { uid, server };
      return identityFindings(cluster, uid);
    },
    [`${name}: rights`]: async () =>
      rights === undefined ? [] : rightsFindings(name, await findLacking(client, rights, limits)),
    [`${name}: imports`]: async () => (mcs ? importsFindings(client, cluster, signal) : []),
    [`${name}: clock`]: async () => {
      const clock = await readClock(client, limits);
      if (clock === undefined || hostClock === undefined) return [skip(`${name}: its clock: no Date header`)];
      return [clockFinding(`${name}: its clock`, "the host's", between(clock, hostClock))];
    },
  });
  return { findings: [ok(`${name} answers at ${server}`), ...findings], found };
}

const UNKNOWN_NAME = /\bgetaddrinfo (ENOTFOUND|EAI_AGAIN)\b/;

function unreachable(name: string, server: string, code: string, problem: string): Finding {
  if (code === "Unauthorized")
    return fail(`${name}: its credentials are refused at ${server}: ${problem}`, rejoin(name));
  return fail(
    `${name} does not answer at ${server}: ${problem}`,
    `start its API server or mend the way there; at another address: \`${rejoin(name)} --member-server URL\``,
  );
}

export function identityFindings(cluster: Stored<Cluster>, uid: string | undefined): Finding[] {
  const { name } = cluster.metadata;
  const expected = recordedUid(cluster);
  if (uid === undefined || expected === undefined) return [];
  if (uid === expected) return [ok(`${name} is the cluster that joined`)];
  return [
    fail(
      `${name}: another cluster answers: the uid of its kube-system namespace is ${uid}, and ${expected} joined`,
      `mend its address, or, if it was built anew: kubectl annotate --overwrite clusters.legation.dev ${name} ${MEMBER_UID_ANNOTATION}=${uid}`,
    ),
  ];
}

/** Judges the rights that the host's account lacks in the member. */
export function rightsFindings(name: string, lacking: readonly Right[]): Finding[] {
  if (lacking.length === 0) return [ok(`${name}: the host's account has every right that it needs`)];
  return [fail(`${name}: the host's account lacks rights: ${rightsText(lacking)}`, rejoin(name))];
}

/** Checks the credentials by which users of the host reach the member. */
async function accessFindings({ host, cluster, now, deadline }: MemberContext): Promise<readonly Finding[]> {
  const { name } = cluster.metadata;
  if (cluster.spec.access === undefined) return [];
  const remedy = `${joinCommandOf(cluster)} --access`;
  const ref = { namespace: ACCESS_NAMESPACE, name: accessSecretName(name) };
  const subject = `${name}: access for users: Secret ${ref.namespace}/${ref.name}`;
  const secret = await host.find(secrets, ref, { signal: deadline.signal });
  const kubeconfig = secretText(secret, ACCESS_KUBECONFIG_KEY);
  if (kubeconfig === undefined) return [fail(`${subject} is missing`, remedy)];
  const claims = tokenClaims(kubeconfig);
  return claims === undefined
    ? [ok(`${subject} is there`)]
    : [tokenFinding(`${subject}: its token`, claims, { now, remedy })];
}
