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
import { attempt, checkedAll, type Deadline, problemOf } from "./check.ts";
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
  const { host, cluster, node, now, deadline } = context;
  const { name } = cluster.metadata;
  const there: Finding[] = [];
  const [ofHost, found] = await Promise.all([
    checkedAll(deadline, {
      [`${name}: access`]: () => accessFindings(context),
      [name]: () => networkFindings(host, cluster, { now, signal: deadline.signal }),
    }),
    attempt(name, deadline, there, async () => {
      const connection = await open(context, there);
      return connection && checkThere(connection, context, there);
    }),
  ]);
  return { findings: [readyFinding(cluster, node), ...ofHost, ...there], found };
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

/** Opens the member by the stored credentials, of which it adds what is found. Resolves to undefined where that is impossible. */
async function open(
  { host, cluster, now, deadline, session }: MemberContext,
  findings: Finding[],
): Promise<Connection | undefined> {
  const { name } = cluster.metadata;
  const { credentialsSecret, agent } = cluster.spec;
  const { name: secretName, key = CLUSTER_DEFAULTS.credentialsKey } = credentialsSecret;
  const subject = `Secret ${SYSTEM_NAMESPACE}/${secretName}`;
  const again = joinCommandOf(cluster);
  const failed = (problem: string): undefined => {
    findings.push(fail(`${name}: ${problem}`, again));
  };
  const ref = { namespace: SYSTEM_NAMESPACE, name: secretName };
  const secret = await host.find(secrets, ref, { signal: deadline.signal });
  if (secret === undefined) return failed(`${subject} with its credentials is missing`);
  const kubeconfig = secretText(secret, key);
  // The agent brings them when it connects.
  if (kubeconfig === undefined && agent !== undefined) return failed("its agent has not brought credentials yet");
  if (kubeconfig === undefined) return failed(`${subject} has no key ${key}`);
  const claims = tokenClaims(kubeconfig);
  if (claims !== undefined) findings.push(tokenFinding(`${name}: its token`, claims, { now, remedy: again }));
  if (agent !== undefined) {
    const why = "it is reached through its agent: its version, rights and clock cannot be read from here";
    findings.push(skip(`${name}: ${why}`));
    return undefined;
  }
  try {
    return await session.connectText(kubeconfig, name);
  } catch (error) {
    if (!isKubeError(error, "BadCredentials")) throw error;
    return failed(`${subject} cannot be used: ${problemOf(error)}`);
  }
}

/** Checks the member itself: that it answers, who it is, its version, its clock, and the rights in it. */
async function checkThere(
  { client, server }: Connection,
  { cluster, node, rights, mcs, hostClock, deadline }: MemberContext,
  findings: Finding[],
): Promise<FoundIdentity | undefined> {
  const { signal, timeoutMs } = deadline;
  const { name } = cluster.metadata;
  try {
    await client.raw({ method: "GET", path: "/readyz?exclude=shutdown", signal, timeoutMs });
  } catch (error) {
    deadline.command.throwIfAborted();
    if (!isKubeError(error)) throw error;
    // Names of a private network or of Docker, say, which the controller resolves.
    if (UNKNOWN_NAME.test(error.detail) && readinessOf(cluster, node).ready === "True") {
      const what = `${name} is at ${server}, a name that this machine does not know: version, clock and rights are not checked`;
      findings.push(skip(what, "run it where the controller runs, or where the name is known"));
      return undefined;
    }
    const problem = signal.aborted ? noAnswer(timeoutMs) : problemOf(error);
    findings.push(unreachable(name, server, error.code, problem));
    return undefined;
  }
  let uid: string | undefined;
  const found = await checkedAll(deadline, {
    [`${name}: version`]: async () => [memberVersion(name, await readVersion(client, deadline))],
    [`${name}: identity`]: async () => {
      uid = await readable(clusterId(client, signal));
      return identityFindings(cluster, uid);
    },
    [`${name}: rights`]: async () =>
      rights === undefined ? [] : rightsFindings(name, await findLacking(client, rights, deadline)),
    [`${name}: imports`]: async () => (mcs ? importsFindings(client, cluster, signal) : []),
    [`${name}: clock`]: async () => {
      const clock = await readClock(client, deadline);
      if (clock === undefined || hostClock === undefined) return [skip(`${name}: its clock: no Date header`)];
      return [clockFinding(`${name}: its clock`, "the host's", between(clock, hostClock))];
    },
  });
  findings.push(ok(`${name} answers at ${server}`), ...found);
  return { uid, server };
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
