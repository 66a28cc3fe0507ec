import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { credentialsSecretName } from "../member/access.ts";
import { otherWithUid } from "../member/identity.ts";
import { removeCluster } from "../member/remove-cluster.ts";
import { Discovery } from "../shared/discovery.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import type { Connection, HostContext } from "../shared/session.ts";
import { FIELD_MANAGER, giveCredentials, type StoredSecret } from "./credentials.ts";
import { grantAccess } from "./grant-access.ts";
import { storedCredentials } from "./stored-credentials.ts";
import { UndoStack } from "./undo.ts";
import { findLeftover, forestalled, isSameMember, joinedMeanwhile, validateJoin } from "./validate.ts";
import { waitForController, waitReady } from "./wait.ts";

export interface JoinOptions {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Address at which the controller reaches the member. Undefined: the kubeconfig's. */
  readonly memberServer?: string | undefined;
  /** Address at which the member's pods reach the host's API server. Undefined: the same for all members. */
  readonly homeApiServer?: string | undefined;
  readonly timeoutMs: number;
  /** Name of the host, as shown in the member. */
  readonly hostName: string;
}

export interface JoinContext extends HostContext {
  /** The member with an administrator's rights. */
  readonly member: Connection;
  /** The ClusterRole of the member-side manifests. */
  readonly role: Manifest;
}

/** A validated join under way. */
interface Joining extends JoinContext {
  readonly hostId: string;
  readonly memberUid: string;
  readonly undo: UndoStack;
}

/**
 * Joins a member, or leaves both clusters as they were. A member that joined before gets the rights of this version, and new
 * credentials if the stored ones fail. Resolves to the Cluster once it is Ready.
 */
export async function join(options: JoinOptions, context: JoinContext): Promise<Stored<Cluster>> {
  const undo = new UndoStack();
  try {
    const { joined, ...identity } = await validateJoin(options.name, context);
    const joining = { ...context, ...identity, undo };
    return await (joined === undefined ? joinFirst(options, joining) : joinAgain(options, joined, joining));
  } catch (error) {
    const remained = await undo.run(context.report);
    for (const what of remained) context.report(`could not be undone: ${what}`);
    throw error;
  }
}

async function joinFirst(options: JoinOptions, joining: Joining): Promise<Stored<Cluster>> {
  const { host, hostId, memberUid, undo, signal, report } = joining;
  const { name, timeoutMs } = options;
  await waitForController(host, { timeoutMs, signal, report });
  await grant(options, joining);
  const keepAccess = undo.keepSoFar();
  const secret = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(name) };
  let credentials: StoredSecret | undefined;
  try {
    const replaced = await findLeftover(host, name, signal);
    credentials = await giveCredentials(options, joining, { replaced });
    await createCluster(options, joining);
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists", "Conflict")) throw error;
    const found = await host.find(secrets, secret, { signal });
    const theirs = credentials?.isIn(found) === true ? credentials.replaced : found;
    if (await isSameMember(theirs, { ...joining, hostId, name })) keepAccess();
    throw forestalled(name, error);
  }
  // Two concurrent joins under two names each create their Cluster before they look, so at least one sees the other.
  const other = await otherWithUid(host, { uid: memberUid, name }, signal);
  if (other !== undefined) {
    keepAccess();
    throw joinedMeanwhile(name, other);
  }
  report(`${host.cluster}: Cluster ${name} created; waiting until it is Ready`);
  return await waitReady(name, joining, { timeoutMs });
}

async function joinAgain(options: JoinOptions, joined: Stored<Cluster>, joining: Joining): Promise<Stored<Cluster>> {
  const { name, memberServer, timeoutMs } = options;
  const { undo, report } = joining;
  refuseOtherSettings(options);
  const { isNewAccount } = await grant(options, joining);
  report(`Cluster ${name} has joined before; its rights in the member are those of this version now`);
  await noteIdentity(joined, joining);
  const { secret, foreign, problem } = await storedCredentials(joined, { memberServer, isNewAccount }, joining);
  if (problem !== undefined) {
    report(`${name}: new credentials, since ${problem.why}`);
    const { withToken } = problem;
    await giveCredentials(options, joining, { replaced: secret, withToken, foreign });
    // The former credentials lead nowhere, so a late Ready must not bring them back.
    if (problem.isUseless) undo.keepSoFar()();
  }
  return await waitReady(name, joining, { timeoutMs, server: memberServer });
}

function grant(
  { name, hostName }: JoinOptions,
  { member, role, hostId, undo, signal, report }: Joining,
): Promise<{ readonly isNewAccount: boolean }> {
  const discovery = new Discovery(member.client, signal);
  const account = { hostId, hostName, cluster: name };
  return grantAccess(role, account, { member: member.client, discovery, undo, signal, report });
}

async function createCluster(
  { name, labels, homeApiServer: server }: JoinOptions,
  { host, memberUid, undo, signal }: Joining,
): Promise<void> {
  const credentialsSecret = { name: credentialsSecretName(name) };
  const cluster: Cluster = {
    apiVersion: "legation.dev/v1alpha1",
    kind: "Cluster",
    metadata: { name, labels: { ...labels }, annotations: { [MEMBER_UID_ANNOTATION]: memberUid } },
    spec: { credentialsSecret, ...(server === undefined ? {} : { homeAPI: { server } }) },
  };
  const pushUndo = (uid?: string): void =>
    undo.push(`${host.cluster}: Cluster ${name}`, (undoSignal) => takeBackCluster(host, { name, uid }, undoSignal));
  try {
    const { metadata } = await host.create(clusters, cluster, { fieldManager: FIELD_MANAGER, signal });
    pushUndo(metadata.uid);
  } catch (error) {
    // A lost answer may stand for a Cluster of this join; after a refusal, a Cluster of the name is another join's.
    if (!isKubeError(error) || error.retryClass === "unknown") pushUndo();
    throw error;
  }
}

// The controller removes its finalizer within seconds if it runs.
const CONTROLLER_PATIENCE_MS = 10_000;

async function takeBackCluster(
  host: ClusterClient,
  { name, uid }: { readonly name: string; readonly uid?: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  const cluster = await host.find(clusters, { name }, { signal });
  if (cluster === undefined || (uid !== undefined && cluster.metadata.uid !== uid)) return;
  await removeCluster(host, cluster, { patienceMs: CONTROLLER_PATIENCE_MS, force: true, signal });
}

/** Records the member's identity in a Cluster that an earlier version joined without it. */
async function noteIdentity(
  { metadata: { name, uid, annotations } }: Stored<Cluster>,
  { host, memberUid, signal }: Joining,
): Promise<void> {
  if (annotations?.[MEMBER_UID_ANNOTATION] === memberUid) return;
  const body = { metadata: { uid, annotations: { [MEMBER_UID_ANNOTATION]: memberUid } } };
  await host.patch(clusters, { name }, { type: "merge", body }, { fieldManager: FIELD_MANAGER, signal });
}

/** Refuses settings that `join` would have to ignore, since the Cluster exists already. */
function refuseOtherSettings({ name, labels, homeApiServer }: JoinOptions): void {
  const object = `Cluster ${name}`;
  if (Object.keys(labels).length > 0) {
    const remedy = `leave out --labels, and write \`kubectl label clusters.legation.dev ${name} KEY=VALUE\``;
    throw new Failure("refused", { object, problem: "has joined already, so it has its labels", remedy });
  }
  if (homeApiServer !== undefined) {
    const patch = JSON.stringify({ spec: { homeAPI: { server: homeApiServer } } });
    const command = `kubectl patch clusters.legation.dev ${name} --type=merge -p '${patch}'`;
    const remedy = `leave out --home-api-server, and write \`${command}\``;
    throw new Failure("refused", { object, problem: "has joined already, so it has its settings", remedy });
  }
}
