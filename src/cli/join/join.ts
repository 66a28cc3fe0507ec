import { randomBytes } from "node:crypto";
import { ACCESS_NAMESPACE, accessAccountName } from "../../api/access.ts";
import type { Cluster } from "../../api/cluster.ts";
import { defined } from "../../api/defined.ts";
import { MEMBER_UID_ANNOTATION, SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { clusters } from "../../api/resources.ts";
import { isKubeError } from "../../kube/errors.ts";
import { deployments } from "../../kube/resources.ts";
import { realClock } from "../../runtime/clock.ts";
import {
  credentialsSecretName,
  hostAccountName,
  removeAccessAccount,
  removeAccessCredentials,
} from "../member/access.ts";
import { imageOf } from "../shared/deployment-image.ts";
import { Failure } from "../shared/failure.ts";
import { type Manifest, shippedManifests } from "../shared/manifests.ts";
import { readVersion } from "../shared/reading.ts";
import type { HostContext } from "../shared/session.ts";
import { until, waitFor, withoutRepeats } from "../shared/wait.ts";
import { type AgentSettings, agentObjects } from "./agent-objects.ts";
import {
  ensureHub,
  FIELD_MANAGER,
  type GivenToken,
  giveCredentials,
  impersonatingToken,
  isSameServer,
  memberAddress,
  storeAgentToken,
  storedKubeconfig,
  storeToken,
} from "./credentials.ts";
import {
  accessAccountObjects,
  grantAccess,
  type HostAccount,
  type ImpersonationRules,
  impersonationOf,
  objectsInMember,
  systemNamespace,
} from "./grant-access.ts";
import {
  type JoinContext,
  type JoinOptions,
  type MemberContext,
  type ValidHost,
  validateHost,
  validateJoin,
} from "./validate.ts";

/** Joins a member, anew or again. Writes the host last: a failed join leaves it as it was. Resolves to the Ready Cluster. */
export async function joinByKubeconfig(options: JoinOptions, context: MemberContext): Promise<Stored<Cluster>> {
  const { name } = options;
  const { host, signal, report } = context;
  const valid = await validateJoin(options, context);
  const { hostId, joined, access, operatorsSecret } = valid;
  await writeCluster(options, valid, context, { dryRun: true });
  const kubeconfigIn = (namespace: string): Promise<string | undefined> => storedKubeconfig(name, namespace, context);
  const before = { controller: await kubeconfigIn(SYSTEM_NAMESPACE), access: await kubeconfigIn(ACCESS_NAMESPACE) };
  let server: string | undefined;
  try {
    const agent = options.agent ? await prepareAgent(options, valid, context) : undefined;
    const token = await grant(options, { ...valid, agent }, context);
    if (agent !== undefined) await storeAgentToken(agent.token, name, context);
    else {
      const address = await memberAddress(options, joined, context);
      if (operatorsSecret === undefined) {
        await giveCredentials(hostId, address, context);
        server = address.server;
      } else {
        const { name: secret, foreign } = operatorsSecret;
        report(`${host.cluster}: Secret ${secret} stays: ${foreign}, so it is your own`);
      }
      if (token !== undefined) await storeToken(address, token, ACCESS_NAMESPACE, context);
    }
    await writeCluster(options, valid, context, { dryRun: false });
  } catch (error) {
    const account = `ServiceAccount ${SYSTEM_NAMESPACE}/${hostAccountName(hostId)}`;
    const removes = joined === undefined ? `, \`legation unjoin ${name} --member-kubeconfig FILE\` removes them` : "";
    report(
      `${name}: ${account} and its rights stay as far as they were made: \`legation join\` again completes the join${removes}`,
    );
    throw error;
  }
  if (options.removeAccess) {
    await removeAccessCredentials(name, context);
    await removeAccessAccount(context.member.client, hostId, context);
  }
  if (!options.agent && joined?.spec.agent !== undefined) {
    report(`${host.cluster}: Cluster ${name} is reached directly from now on, and not through its agent`);
  }
  report(`${host.cluster}: Cluster ${name} is stored; waiting until it is Ready`);
  // An earlier connection to the member may be Ready still.
  const stale = async ({ status }: Stored<Cluster>): Promise<string | undefined> => {
    if (options.agent) return (await kubeconfigIn(SYSTEM_NAMESPACE)) === before.controller ? NO_AGENT : undefined;
    // Version 0.1.0 of the controller does not report its server.
    const isThere = server === undefined || status?.server === undefined || isSameServer(status.server, server);
    return isThere ? undefined : `the controller has not gone over to ${server} yet`;
  };
  const begin = realClock.now();
  const cluster = await waitReady(options, stale, context);
  const brought = async (): Promise<boolean> => (await kubeconfigIn(ACCESS_NAMESPACE)) !== before.access;
  const waits = options.agent && access !== undefined;
  const timeoutMs = options.timeout - (realClock.now() - begin);
  if (waits && !(await until(brought, { timeoutMs, signal }))) {
    report(`${name}: its agent has not brought a token for \`legation access\` yet: until then users do not reach it`);
  }
  return cluster;
}

const NO_AGENT =
  "no agent with the token of this join has connected: look at its log in the member, and whether the controller runs with --hub-listen; it may within an hour";

/** Writes the host's side of a join with an agent, and returns the manifest of the member's. Rejects with `Failure`. */
export async function joinByManifest(options: JoinOptions, context: JoinContext): Promise<readonly Manifest[]> {
  const { name } = options;
  const valid = await validateHost(options, context);
  const { hostId, joined, access } = valid;
  await writeCluster(options, valid, context, { dryRun: true });
  const agent = await prepareAgent(options, valid, context);
  await storeAgentToken(agent.token, name, context);
  await writeCluster(options, valid, context, { dryRun: false });
  if (options.removeAccess) {
    await removeAccessCredentials(name, context);
    context.report(
      `${name}: ServiceAccount ${SYSTEM_NAMESPACE}/${accessAccountName(hostId)} and its rights stay there until ` +
        "`legation join --remove-access --member-kubeconfig FILE`, or until an administrator of the member deletes them",
    );
  }
  const impersonation = access && impersonationOf(joined?.status?.version);
  const account = { hostId, hostName: context.hostName, cluster: name };
  const granted = { types: [], definitions: false, further: furtherObjects(account, impersonation, agent) };
  const { role, owned } = objectsInMember(context.role, account, granted);
  return [systemNamespace, role, ...owned];
}

function furtherObjects(
  account: HostAccount,
  impersonation: ImpersonationRules | undefined,
  agent: AgentSettings | undefined,
): readonly Manifest[] {
  const ofUsers = impersonation === undefined ? [] : accessAccountObjects(account, impersonation);
  return agent === undefined ? ofUsers : [...ofUsers, ...agentObjects(account, agent)];
}

const TOKEN_BYTES = 32;

/** Chooses an agent's settings, and makes the hub that it connects to. */
async function prepareAgent(
  options: JoinOptions,
  { joined, access }: ValidHost,
  context: HostContext,
): Promise<AgentSettings> {
  const image = options.agentImage ?? (await controllerImage(context));
  const hub = await ensureHub(options.hubAddress, context);
  const homeApi = leadsToHomeApi(options, joined);
  const token = randomBytes(TOKEN_BYTES).toString("base64url");
  return { image, ...hub, token, homeApi, access: access !== undefined };
}

/** Reports whether the agent leads pods to the host's API server: by this join, or by an earlier one. */
function leadsToHomeApi(options: JoinOptions, joined: Cluster | undefined): boolean {
  if (!options.agent || options.homeApiServer !== undefined) return false;
  return options.homeApiThroughAgent || (joined?.spec.agent?.homeAPI === true && joined.spec.homeAPI === undefined);
}

/** Returns the image of the host's controller, which the agent runs, too. The manifests name it where the controller runs outside. */
async function controllerImage({ host, signal }: HostContext): Promise<string> {
  const manifest = (await shippedManifests()).find(({ kind }) => kind === deployments.kind);
  const ref = { namespace: SYSTEM_NAMESPACE, name: manifest?.metadata.name ?? "" };
  const image = imageOf(await host.find(deployments, ref, { signal })) ?? imageOf(manifest);
  if (image !== undefined) return image;
  throw new Failure("usage", { object: "--agent-image", problem: "is missing", remedy: "write --agent-image IMAGE" });
}

/** Grants the host its rights in the member. Resolves to the token by which users of the host are impersonated, if they may be. */
async function grant(
  { name, definitions }: JoinOptions,
  {
    hostId,
    access,
    types,
    agent,
  }: Awaited<ReturnType<typeof validateJoin>> & { readonly agent: AgentSettings | undefined },
  context: MemberContext,
): Promise<GivenToken | undefined> {
  const { member, hostName, signal, report } = context;
  const account = { hostId, hostName, cluster: name };
  const wanted = access && impersonationOf(await readVersion(member.client, { signal }));
  for (const impersonation of new Set([wanted, access && ("any" as const)])) {
    const further = furtherObjects(account, impersonation, agent);
    await grantAccess(account, { types, definitions, further }, context);
    const token = access && (await impersonatingToken({ hostId, cluster: name, prefix: access.prefix }, context));
    if (access === undefined || token !== undefined) return token;
    if (impersonation === "any") break;
    report(`${name}: constrained impersonation is switched off there: the account may impersonate any user`);
  }
  throw new Failure("refused", {
    object: `Cluster ${name}`,
    field: "--access",
    problem: "the member's API server refuses impersonation by the new account, though its ClusterRole permits it",
    remedy: "look for an authorization webhook of the member that denies it, or join without --access",
  });
}

/** Creates the Cluster, or adds the given settings to the one that joined before. */
async function writeCluster(
  options: JoinOptions,
  { memberUid, joined, access }: ValidHost,
  { host, signal }: HostContext,
  { dryRun }: { readonly dryRun: boolean },
): Promise<void> {
  const { name, homeApiServer, network } = options;
  const write = { fieldManager: FIELD_MANAGER, signal, dryRun };
  const annotations = memberUid === undefined ? {} : { [MEMBER_UID_ANNOTATION]: memberUid };
  const metadata = { name, labels: { ...options.labels }, annotations };
  const homeAPI = homeApiServer === undefined ? undefined : { server: homeApiServer };
  const agent = options.agent ? (leadsToHomeApi(options, joined) ? { homeAPI: true } : {}) : undefined;
  const settings = defined({ homeAPI, network: network === "" ? undefined : network, agent, access });
  if (joined !== undefined) {
    const spec = {
      access: null,
      ...(network === "" ? { network: null } : {}),
      ...(options.homeApiThroughAgent ? { homeAPI: null } : {}),
      ...settings,
      // A member that is joined directly has an agent no more.
      agent: agent === undefined ? null : { homeAPI: null, ...agent },
    };
    const body = { metadata: { ...metadata, uid: joined.metadata.uid }, spec };
    await host.patch(clusters, { name }, { type: "merge", body }, write);
    return;
  }
  const spec = { credentialsSecret: { name: credentialsSecretName(name) }, ...settings };
  try {
    await host.create(clusters, { apiVersion: "legation.dev/v1alpha1", kind: "Cluster", metadata, spec }, write);
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists")) throw error;
    throw new Failure("refused", {
      object: `Cluster ${name}`,
      problem: "another `legation join` has taken this name meanwhile",
      remedy: "look at `legation status`; to join this member too, choose another name",
      cause: error,
    });
  }
}

/** Waits until the controller reports the Cluster as Ready, and no more as `stale`. Rejects with `Failure` on timeout. */
async function waitReady(
  { name, timeout: timeoutMs }: JoinOptions,
  stale: (cluster: Stored<Cluster>) => Promise<string | undefined>,
  { host, signal, report }: HostContext,
): Promise<Stored<Cluster>> {
  let problem: string | undefined;
  const tell = withoutRepeats(report);
  const ready = await waitFor(
    async () => {
      const cluster = await host.get(clusters, { name }, { signal });
      const why = await stale(cluster);
      const condition = cluster.status?.conditions?.find(({ type }) => type === "Ready");
      if (why === undefined && condition?.status === "True") return cluster;
      problem = why ?? condition?.message ?? problem;
      // An agent takes its time to start.
      if (problem !== undefined && problem !== NO_AGENT) tell(`${name}: not ready: ${problem}`);
      return undefined;
    },
    { timeoutMs, signal },
  );
  if (ready !== undefined) return ready;
  const [what, why, first] =
    problem === undefined
      ? ["no controller reported on it", "", "check that `legation controller` runs"]
      : ["was not True", `: ${problem}`, "repair that"];
  throw new Failure("notReady", {
    object: `Cluster ${name}`,
    field: "status.conditions[Ready]",
    problem: `${what} within ${timeoutMs / 1000} s${why}`,
    remedy:
      `${first}: it has joined, and becomes Ready then; ` +
      `\`legation join\` again replaces credentials and address, \`legation unjoin ${name}\` takes it out`,
  });
}
