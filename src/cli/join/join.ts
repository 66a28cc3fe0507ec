import type { Cluster } from "../../api/cluster.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError } from "../../kube/errors.ts";
import { secrets } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import { Discovery } from "../discovery/discovery.ts";
import { Failure } from "../failure.ts";
import type { Manifest } from "../manifests/load.ts";
import { requestToken } from "../member/access.ts";
import { otherWithUid } from "../member/joined.ts";
import { credentialsSecretName } from "../member/names.ts";
import { removeCluster } from "../member/remove-cluster.ts";
import type { Connection } from "../session.ts";
import { waitFor } from "../wait.ts";
import { forestalled, isSameMember, joinedMeanwhile } from "./contest.ts";
import { waitForController } from "./controller-leads.ts";
import { isSameServer, memberKubeconfig } from "./kubeconfig.ts";
import { type StoredCredentials, storedCredentials } from "./renew.ts";
import { FIELD_MANAGER, grantAccess, type StoredSecret, storeCredentials } from "./steps.ts";
import { UndoStack } from "./undo.ts";
import { findLeftover, validateJoin } from "./validate.ts";

export interface JoinOptions {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Address that the controller shall use, when it is not the kubeconfig's. */
  readonly memberServer?: string | undefined;
  /** Where the member's pods find the host's API server, when it is not the same for all members. */
  readonly homeApiServer?: string | undefined;
  readonly timeoutMs: number;
  /** Name of the host, as shown in the member. */
  readonly hostName: string;
}

export interface JoinContext {
  readonly host: ClusterClient;
  readonly member: Connection;
  /** Opens the member as the controller will: from the kubeconfig that was made. */
  readonly connectText: (kubeconfig: string, as: string) => Promise<Connection>;
  /** The member-side ClusterRole of the manifests. */
  readonly role: Manifest;
  readonly signal: AbortSignal;
  readonly report: (line: string) => void;
}

/**
 * Joins a member, or leaves both clusters as they were. One that has joined before gets the rights that this version
 * needs, and credentials when those that the host has do not do. Resolves to the Cluster when it is Ready.
 */
export async function join(options: JoinOptions, context: JoinContext): Promise<Stored<Cluster>> {
  const undo = new UndoStack();
  try {
    return await joinSteps(options, context, undo);
  } catch (error) {
    const remained = await undo.run(context.report);
    for (const what of remained) context.report(`could not be undone: ${what}`);
    throw error;
  }
}

async function joinSteps(options: JoinOptions, context: JoinContext, undo: UndoStack): Promise<Stored<Cluster>> {
  const { host, member, signal, report } = context;
  const { name } = options;
  const { hostId, memberUid, joined } = await validateJoin({
    host,
    hostDiscovery: new Discovery(host, signal),
    member: member.client,
    name,
    signal,
  });
  if (joined !== undefined) refuseOtherSettings(options);
  else await waitForController(host, { timeoutMs: options.timeoutMs, signal, report });

  const discovery = new Discovery(member.client, signal);
  const account = { hostId, hostName: options.hostName, cluster: name };
  const granting = { member: member.client, discovery, undo, signal, report };
  const { isNewAccount } = await grantAccess(context.role, account, granting);
  if (joined !== undefined) {
    report(`Cluster ${name} has joined before; its rights in the member are those of this version now`);
    await noteIdentity(joined, memberUid, { host, signal });
    const { memberServer } = options;
    const stored = await storedCredentials(joined, { hostId, memberServer, isNewAccount }, context);
    if (stored.problem !== undefined) {
      report(`${name}: new credentials, since ${stored.problem}`);
      const { secret: replaced, withToken, foreign } = stored;
      await giveCredentials(options, context, { hostId, undo, replaced, withToken, foreign });
      // However long it takes to be Ready: what was there before led nowhere.
      if (stored.useless) undo.keepSoFar()();
    }
    // Until then it is Ready, or not, at its former address.
    return await waitReady(host, options, signal, report, options.memberServer);
  }
  const keepAccess = undo.keepSoFar();
  const secret = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(name) };
  let credentials: StoredSecret | undefined;
  try {
    const replaced = await findLeftover(host, name, signal);
    credentials = await giveCredentials(options, context, { hostId, undo, replaced });
    await createCluster(options, { host, memberUid, undo, signal });
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists", "Conflict")) throw error;
    const found = await host.find(secrets, secret, { signal });
    const theirs = credentials?.isIn(found) === true ? credentials.replaced : found;
    const { connectText } = context;
    if (await isSameMember(theirs, { member: member.client, hostId, name, connectText, signal })) keepAccess();
    throw forestalled(name, error);
  }
  // Two concurrent joins of one member under two names each create their Cluster before they look, so one sees the other.
  const other = await otherWithUid(host, { uid: memberUid, name }, signal);
  if (other !== undefined) {
    keepAccess();
    throw joinedMeanwhile(name, other);
  }
  report(`${host.cluster}: Cluster ${name} created; waiting until it is Ready`);
  return await waitReady(host, options, signal, report);
}

async function createCluster(
  { name, labels, homeApiServer: server }: JoinOptions,
  {
    host,
    memberUid,
    undo,
    signal,
  }: {
    readonly host: ClusterClient;
    readonly memberUid: string;
    readonly undo: UndoStack;
    readonly signal: AbortSignal;
  },
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
    // Where the server has surely not made it, one of the name is another's. Where the answer was lost, it is found by its name.
    if (!isKubeError(error) || error.retryClass === "unknown") pushUndo();
    throw error;
  }
}

/** Lets the Cluster know its member, as one that an earlier version has joined does not. */
async function noteIdentity(
  { metadata: { name, uid, annotations } }: Stored<Cluster>,
  memberUid: string,
  { host, signal }: { readonly host: ClusterClient; readonly signal: AbortSignal },
): Promise<void> {
  if (annotations?.[MEMBER_UID_ANNOTATION] === memberUid) return;
  const body = { metadata: { uid, annotations: { [MEMBER_UID_ANNOTATION]: memberUid } } };
  await host.patch(clusters, { name }, { type: "merge", body }, { fieldManager: FIELD_MANAGER, signal });
}

/** Has a token made in the member, tries it, and stores it on the host. */
async function giveCredentials(
  options: JoinOptions,
  context: JoinContext,
  given: {
    readonly hostId: string;
    readonly undo: UndoStack;
    /** The Secret that is there. */
    readonly replaced: Stored<Secret> | undefined;
    readonly withToken?: StoredCredentials["withToken"];
    readonly foreign?: StoredCredentials["foreign"];
  },
): Promise<StoredSecret> {
  const { host, member, signal, report } = context;
  const { hostId, undo, replaced, withToken, foreign } = given;
  const { token, expires } = await requestToken(member.client, hostId, signal);
  const kubeconfig =
    withToken?.(token) ??
    memberKubeconfig({
      cluster: options.name,
      server: options.memberServer ?? member.server,
      certificateAuthority: member.certificateAuthority,
      skipsTlsVerify: member.skipsTlsVerify,
      tlsServerName: member.tlsServerName,
      // The way from this machine to the kubeconfig's address: the controller, elsewhere, has its own to another one.
      proxyUrl: options.memberServer === undefined ? member.proxyUrl : undefined,
      token,
    });
  // The stored address is the one that the controller uses, as --member-server is; this machine need not reach it.
  const isForController = withToken !== undefined || options.memberServer !== undefined;
  await tryAccess(kubeconfig, { name: options.name, isForController }, context);
  const credentials = { cluster: options.name, kubeconfig, expires, foreign };
  const stored = await storeCredentials(credentials, { host, undo, signal, replaced });
  report(`${host.cluster}: Secret ${stored.name} stored; its token ends ${expires} and is renewed before`);
  return stored;
}

/** Refuses settings that differ from the existing Cluster's, instead of ignoring them. */
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

/** Uses the new account once, so that wrong rights or a wrong address show here and not in the controller's log. */
async function tryAccess(
  kubeconfig: string,
  { name, isForController }: { readonly name: string; readonly isForController: boolean },
  { connectText, signal, report }: JoinContext,
): Promise<void> {
  const { client, server } = await connectText(kubeconfig, name);
  // A binding takes a moment to reach the authorizer's cache.
  const attempts = 20;
  for (let attempt = 1; ; attempt++) {
    try {
      await client.raw({ method: "GET", path: "/api/v1/pods?limit=1", signal });
      return;
    } catch (error) {
      if (isKubeError(error, "Forbidden", "Unauthorized") && attempt < attempts) {
        await realClock.sleep(250, signal);
        continue;
      }
      if (!isForController || !isKubeError(error, "NotSent", "AnswerLost")) throw error;
      report(`${name}: ${server} cannot be reached from here; the controller must reach it`);
      return;
    }
  }
}

async function waitReady(
  host: ClusterClient,
  { name, timeoutMs }: JoinOptions,
  signal: AbortSignal,
  report: (line: string) => void,
  server?: string,
): Promise<Stored<Cluster>> {
  let told: string | undefined;
  const ready = await waitFor(
    async () => {
      const cluster = await host.get(clusters, { name }, { signal });
      const { server: current } = cluster.status ?? {};
      // A controller of the last version does not say it.
      if (server !== undefined && current !== undefined && !isSameServer(current, server)) {
        told = `the controller has not gone over to ${server} yet`;
        return undefined;
      }
      const condition = cluster.status?.conditions?.find(({ type }) => type === "Ready");
      if (condition?.status === "True") return cluster;
      if (condition !== undefined && condition.message !== told) {
        told = condition.message;
        report(`${name}: not ready: ${told}`);
      }
      return undefined;
    },
    { timeoutMs, signal },
  );
  if (ready !== undefined) return ready;
  throw new Failure("notReady", {
    object: `Cluster ${name}`,
    field: "status.conditions[Ready]",
    problem:
      told === undefined
        ? `nobody reported on it within ${timeoutMs / 1000} s`
        : `was not True within ${timeoutMs / 1000} s: ${told}`,
    remedy:
      told === undefined
        ? "check that `legation controller` runs, then join again"
        : `repair that and join again, with a longer --timeout if it is slow`,
  });
}

// The controller removes its finalizer within seconds when it runs; when it does not, nobody else will.
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
